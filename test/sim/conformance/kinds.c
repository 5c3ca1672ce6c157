/* The scripts of kinds with several holders or a queue, and foreign values in their keys. */
#include "sim/conformance/conformance.h"

#define FAIR "{g} {g}q {g}a"
#define HELD "{r} {r}h"
#define RW "{w} {w}r {w}t {w}w {w}a"
#define SEMAPHORE "{s} {s}p {s}q {s}a"
#define BARRIER "{b} {b}w {b}t {b}g"
#define LEADER "{e} {e}t"

// clang-format off
const conformance_row_t conformance_kinds[] = {
    /* passing it on, and telling whom it concerns */
    ROWS_LIKE(LIKE_MS,
      "EVAL @lock_acquire 1 %L %o %t %t|EVAL @lock_hand_over 1 %L %o %o %t|"
      "EVALSHA $lock_hand_over 1 %L %o %o %t|EVAL @lock_hand_over 1 %L %o %o %e|PTTL %L"),
    ROWS_LIKE(LIKE_FENCE, "EVAL @lock_hand_over_fenced 2 %L %F %o %o %t %t"),
    ROWS("EVAL @lock_release 1 %L %o %H %o|GET %L"),
    ROWS_LIKE(LIKE_CLOCK, "HMGET %F number token"),
    /* first come, first served */
    ROWS_LIKE(LIKE_MS,
      "EVAL @fair_acquire 3 " FAIR " %o %t %P %t %H|"
      "EVALSHA $fair_acquire 3 " FAIR " %o %t %P %t %H|PTTL {g}q"),
    ROWS_LIKE(LIKE_FENCE, "EVAL @fair_acquire 4 " FAIR " %F %o %t %P %t %H %t"),
    ROWS(
      "EVAL @fair_release 3 " FAIR " %o %H %P|EVAL @fair_release 3 " FAIR " %o %H %P|"
      "ZRANGE {g}q 0 -1 WITHSCORES|GET {g}|DEL {g}q"),
    ROWS_LIKE(LIKE_SET, "ZRANGE {g}a 0 -1"),
    /* several holds of one owner */
    ROWS_LIKE(LIKE_FENCE,
      "EVAL @reentrant_acquire 2 " HELD " %o %t %O %t|"
      "EVAL @reentrant_acquire 3 " HELD " %F %o %t %O %t %t"),
    ROWS("EVAL @reentrant_extend 2 " HELD " %o %t 0|EVAL @reentrant_release 2 " HELD " %o %H"),
    ROWS_OF(LIKE_CLOCK, ROW_AS_IT_IS, "HMGET {r}h owner number"),
    /* a token has a time */
    ROWS_LIKE(LIKE_MS, "PTTL {r}|PTTL {r}h"),
    ROWS("DEL {r}"),
    /* readers and writers */
    ROWS_LIKE(LIKE_MS,
      "EVAL @rwlock_read 5 " RW " %o %t %P %t %H|EVAL @rwlock_write 5 " RW " %o %t %P %t|"
      "PTTL {w}r|PTTL {w}a"),
    ROWS_LIKE(LIKE_FENCE,
      "EVAL @rwlock_read 6 " RW " %F %o %t %P %t %o %t|"
      "EVAL @rwlock_write 6 " RW " %F %o %t %P %t %t"),
    ROWS(
      "EVAL @rwlock_extend 5 " RW " %o %t 0 %M %H|EVAL @rwlock_extend 5 " RW " %o %t %t %M %H|"
      "EVAL @rwlock_release 5 " RW " %o %H %P|EVALSHA $rwlock_release 5 " RW " %o %H %P|GET {w}"),
    ROWS_LIKE(LIKE_SET, "ZRANGE {w}r 0 -1|ZRANGE {w}t 0 -1|ZRANGE {w}w 0 -1|ZRANGE {w}a 0 -1"),
    /* permits */
    ROWS_LIKE(LIKE_MS,
      "EVAL @semaphore_acquire 4 " SEMAPHORE " %o %t %n 3 %P %t %H 0|"
      "EVALSHA $semaphore_acquire 4 " SEMAPHORE " %o %t %n 3 %P %t %H 0|"
      "EVAL @semaphore_acquire 4 " SEMAPHORE " %o %t %n %n %P %t %H 1"),
    ROWS("EVAL @semaphore_extend 4 " SEMAPHORE " %o %t 0 %t"),
    /* where a word is left out the last */
    ROWS("EVAL @semaphore_extend 4 " SEMAPHORE " %o %t %t %t"),
    /* is a ttl, which must not be brief */
    ROWS(
      "EVAL @semaphore_release 4 " SEMAPHORE " %o %H %P|"
      "EVAL @semaphore_release 4 " SEMAPHORE " %o %H %P|EVAL @semaphore_read 4 " SEMAPHORE "|"
      "EVAL @semaphore_resize 4 " SEMAPHORE " %n %H|ZRANGE {s}q 0 -1 WITHSCORES|DEL {s}|"
      "DEL {s} {s}p"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL {s}p"),
    ROWS_LIKE(LIKE_SET, "ZRANGE {s} 0 -1"),
    /* latches and barriers */
    ROWS(
      "EVAL @latch_count 1 {l} 3 %t %P %H %t|EVAL @latch_count 1 {l} %n %t %P %H %t|"
      "HGET {l} count|HLEN {l}|DEL {l}|EVAL @barrier_arrive 4 " BARRIER " 3 %t %P %t %t %H %P|"
      "EVALSHA $barrier_arrive 4 " BARRIER " 3 %t %P %t %t %H %P|"
      "EVAL @barrier_arrive 4 " BARRIER " %n %t %P %t %t %H %P|"
      "EVAL @barrier_withdraw 2 {b}w {b}t %P %t|DEL {b} {b}w {b}t {b}g|DEL {b}t"),
    ROWS_LIKE(LIKE_CLOCK,
      "EVAL @latch_read 1 {l} 3 %t %H|EVAL @latch_read 1 {l} %n %t %H|"
      "EVAL @latch_read 1 {l} 3 %t %P"),
    ROWS_LIKE(LIKE_MS, "PTTL {l}"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL {b}"),
    ROWS_LIKE(LIKE_SET, "ZRANGE {b}w 0 -1|ZRANGE {b}t 0 -1"),
    /* leaders, and several names */
    ROWS_LIKE(LIKE_FENCE, "EVAL @election_acquire 2 " LEADER " %o %t %t %H %m"),
    ROWS(
      "EVAL @election_extend 2 " LEADER " %o %t 0 %t|EVAL @lock_release 1 {e} %o %H %o|"
      "EVAL @multi_extend 2 %L %L %o %t 0|EVAL @multi_release 2 %L %L %o %H %o"),
    ROWS_LIKE(LIKE_CLOCK, "EVAL @election_read 2 " LEADER),
    ROWS_LIKE(LIKE_MS, "EVAL @multi_acquire 2 %L %L %o %t %t|PTTL %C"),
    /* keys of other types stay unchanged */
    ROWS(
      "SET {s} %v|SET {w}r %v|HSET {g} a b|SET {b}w %v|SET {l} %v|DEL {g} {w}r {s} {b}w {l}|"
      "DEL {g} {w}r {s} {b}w {l}"),
    END,
};
// clang-format on
