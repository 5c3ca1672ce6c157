/* The scripts of kinds with several holders or a queue, and foreign values in their keys. */
#include "sim/conformance/conformance.h"

#define FAIR "{g} {g}q {g}a"
#define HELD "{r} {r}h"
#define RW "{w} {w}r {w}t {w}w {w}a"
#define SEMAPHORE "{s} {s}p {s}q {s}a"
#define BARRIER "{b} {b}w {b}t {b}g"
#define LEADER "{e} {e}t"

const conformance_row_t conformance_kinds[] = {
    /* passing it on, and telling whom it concerns */
    ROW_LIKE("EVAL @lock_acquire 1 %L %o %t", LIKE_MS),
    ROW_LIKE("EVAL @lock_hand_over 1 %L %o %o %t", LIKE_MS),
    ROW_LIKE("EVALSHA $lock_hand_over 1 %L %o %o %t", LIKE_MS),
    ROW_LIKE("EVAL @lock_hand_over 1 %L %o %o %e", LIKE_MS),
    ROW_LIKE("EVAL @lock_hand_over_fenced 2 %L %F %o %o %t %t", LIKE_FENCE),
    ROW("EVAL @lock_release 1 %L %o %H %o"),
    ROW("GET %L"),
    ROW_LIKE("PTTL %L", LIKE_MS),
    ROW_LIKE("HMGET %F number token", LIKE_CLOCK),

    /* first come, first served */
    ROW_LIKE("EVAL @fair_acquire 3 " FAIR " %o %t %P %t %H", LIKE_MS),
    ROW_LIKE("EVALSHA $fair_acquire 3 " FAIR " %o %t %P %t %H", LIKE_MS),
    ROW_LIKE("EVAL @fair_acquire 4 " FAIR " %F %o %t %P %t %H %t", LIKE_FENCE),
    ROW("EVAL @fair_release 3 " FAIR " %o %H %P"),
    ROW("EVAL @fair_release 3 " FAIR " %o %H %P"),
    ROW("ZRANGE {g}q 0 -1 WITHSCORES"),
    ROW_LIKE("ZRANGE {g}a 0 -1", LIKE_SET),
    ROW("GET {g}"),
    ROW_LIKE("PTTL {g}q", LIKE_MS),
    ROW("DEL {g}q"),

    /* several holds of one owner */
    ROW_LIKE("EVAL @reentrant_acquire 2 " HELD " %o %t %O", LIKE_FENCE),
    ROW_LIKE("EVAL @reentrant_acquire 3 " HELD " %F %o %t %O %t", LIKE_FENCE),
    ROW("EVAL @reentrant_extend 2 " HELD " %o %t 0"),
    ROW("EVAL @reentrant_release 2 " HELD " %o %H"),
    {"HMGET {r}h owner number", LIKE_CLOCK, ROW_AS_IT_IS}, /* a token has a time */
    ROW_LIKE("PTTL {r}", LIKE_MS),
    ROW_LIKE("PTTL {r}h", LIKE_MS),
    ROW("DEL {r}"),

    /* readers and writers */
    ROW_LIKE("EVAL @rwlock_read 5 " RW " %o %t %P %t %H", LIKE_MS),
    ROW_LIKE("EVAL @rwlock_read 6 " RW " %F %o %t %P %t %o %t", LIKE_FENCE),
    ROW_LIKE("EVAL @rwlock_write 5 " RW " %o %t %P %t", LIKE_MS),
    ROW_LIKE("EVAL @rwlock_write 6 " RW " %F %o %t %P %t %t", LIKE_FENCE),
    ROW("EVAL @rwlock_extend 5 " RW " %o %t 0 %M %H"),
    ROW("EVAL @rwlock_extend 5 " RW " %o %t %t %M %H"),
    ROW("EVAL @rwlock_release 5 " RW " %o %H %P"),
    ROW("EVALSHA $rwlock_release 5 " RW " %o %H %P"),
    ROW("GET {w}"),
    ROW_LIKE("ZRANGE {w}r 0 -1", LIKE_SET),
    ROW_LIKE("ZRANGE {w}t 0 -1", LIKE_SET),
    ROW_LIKE("ZRANGE {w}w 0 -1", LIKE_SET),
    ROW_LIKE("ZRANGE {w}a 0 -1", LIKE_SET),
    ROW_LIKE("PTTL {w}r", LIKE_MS),
    ROW_LIKE("PTTL {w}a", LIKE_MS),

    /* permits */
    ROW_LIKE("EVAL @semaphore_acquire 4 " SEMAPHORE " %o %t %n 3 %P %t %H 0", LIKE_MS),
    ROW_LIKE("EVALSHA $semaphore_acquire 4 " SEMAPHORE " %o %t %n 3 %P %t %H 0", LIKE_MS),
    ROW_LIKE("EVAL @semaphore_acquire 4 " SEMAPHORE " %o %t %n %n %P %t %H 1", LIKE_MS),
    ROW("EVAL @semaphore_extend 4 " SEMAPHORE
        " %o %t 0 %t"), /* where a word is left out the last */
    ROW("EVAL @semaphore_extend 4 " SEMAPHORE
        " %o %t %t %t"), /* is a ttl, which must not be brief */
    ROW("EVAL @semaphore_release 4 " SEMAPHORE " %o %H %P"),
    ROW("EVAL @semaphore_release 4 " SEMAPHORE " %o %H %P"),
    ROW("EVAL @semaphore_read 4 " SEMAPHORE),
    ROW("EVAL @semaphore_resize 4 " SEMAPHORE " %n %H"),
    ROW_LIKE("HGETALL {s}p", LIKE_PAIRS),
    ROW_LIKE("ZRANGE {s} 0 -1", LIKE_SET),
    ROW("ZRANGE {s}q 0 -1 WITHSCORES"),
    ROW("DEL {s}"),
    ROW("DEL {s} {s}p"),

    /* latches and barriers */
    ROW("EVAL @latch_count 1 {l} 3 %t %P %H %t"),
    ROW("EVAL @latch_count 1 {l} %n %t %P %H %t"),
    ROW_LIKE("EVAL @latch_read 1 {l} 3 %t %H", LIKE_CLOCK),
    ROW_LIKE("EVAL @latch_read 1 {l} %n %t %H", LIKE_CLOCK),
    ROW_LIKE("EVAL @latch_read 1 {l} 3 %t %P", LIKE_CLOCK),
    ROW("HGET {l} count"),
    ROW("HLEN {l}"),
    ROW_LIKE("PTTL {l}", LIKE_MS),
    ROW("DEL {l}"),
    ROW("EVAL @barrier_arrive 4 " BARRIER " 3 %t %P %t %t %H %P"),
    ROW("EVALSHA $barrier_arrive 4 " BARRIER " 3 %t %P %t %t %H %P"),
    ROW("EVAL @barrier_arrive 4 " BARRIER " %n %t %P %t %t %H %P"),
    ROW("EVAL @barrier_withdraw 2 {b}w {b}t %P %t"),
    ROW_LIKE("HGETALL {b}", LIKE_PAIRS),
    ROW_LIKE("ZRANGE {b}w 0 -1", LIKE_SET),
    ROW_LIKE("ZRANGE {b}t 0 -1", LIKE_SET),
    ROW("DEL {b} {b}w {b}t {b}g"),
    ROW("DEL {b}t"),

    /* leaders, and several names */
    ROW_LIKE("EVAL @election_acquire 2 " LEADER " %o %t %t %H %m", LIKE_FENCE),
    ROW("EVAL @election_extend 2 " LEADER " %o %t 0 %t"),
    ROW_LIKE("EVAL @election_read 2 " LEADER, LIKE_CLOCK),
    ROW("EVAL @lock_release 1 {e} %o %H %o"),
    ROW_LIKE("EVAL @multi_acquire 2 %L %L %o %t", LIKE_MS),
    ROW("EVAL @multi_extend 2 %L %L %o %t 0"),
    ROW("EVAL @multi_release 2 %L %L %o %H %o"),

    /* keys of other types stay unchanged */
    ROW("SET {s} %v"),
    ROW("SET {w}r %v"),
    ROW("HSET {g} a b"),
    ROW("SET {b}w %v"),
    ROW("SET {l} %v"),
    ROW("DEL {g} {w}r {s} {b}w {l}"),
    ROW("DEL {g} {w}r {s} {b}w {l}"),
    END,
};
