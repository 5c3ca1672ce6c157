/* The scripts of src/data, and foreign values in their keys. */
#include "sim/conformance/conformance.h"

#define WIDE "-9223372036854775808 9223372036854775807"
#define PRINT "0123456789abcdef"
#define ALICE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BOB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TURNS "{t} {t}turns"

const conformance_row_t conformance_data[] = {
    /* counters */
    ROW("EVAL @counter_add 1 {c} %i " WIDE " 0 0 1"),
    ROW("EVAL @counter_add 1 {c} %i " WIDE " %t 1 0"),
    ROW("EVAL @counter_add 1 {c} 7 %i %i %t 0 1"),
    ROW("EVALSHA $counter_add 1 {c} -7 %i %i 0 0 1"),
    ROW("EVAL @counter_once 2 {c} {c}one %i %t 0 0 0 x"),
    ROW("EVAL @counter_once 2 {c} {c}two 5 %t %t 1 0 x"),
    ROW("EVALSHA $counter_once 2 {c} {c}two 5 %t %t 0 0 x"),
    ROW("EVAL @counter_once 2 {c} {c}ops %i 5000 0 0 3 %m"),
    ROW("EVALSHA $counter_once 2 {c} {c}ops 5 %t %t 1 3 %m"),
    ROW("HMGET {c}ops first next s0 s1"),
    ROW("DEL {c}ops"),
    ROW("GET {c}"),
    ROW("GET {c}one"),
    ROW_LIKE("PTTL {c}", LIKE_MS),
    ROW("SET {c} %i"),
    ROW("DEL {c} {c}one"),
    ROW("DEL {c} {c}two"),
    ROW("EVAL @counter_fields 1 {f} 0 0 %m %i " WIDE),
    ROW("EVAL @counter_fields 1 {f} %t 1 a %i " WIDE " b 1 -5 %i"),
    ROW_LIKE("EVAL @counter_all 1 {f} %n 100000", LIKE_PAIRS),
    ROW_LIKE("EVAL @counter_all 1 {f} 20 100000", LIKE_PAIRS),
    ROW_LIKE("HGETALL {f}", LIKE_PAIRS),
    ROW_LIKE("PTTL {f}", LIKE_MS),
    ROW("DEL {f}"),

    /* ids */
    ROW("EVAL @idgen_segment 1 {i} 10 110 0 %S 1 0 0"),
    ROW("EVAL @idgen_segment 1 {i} 10 110 %N %S 1 0 0"),
    ROW("EVALSHA $idgen_segment 1 {i} %n 100 0 %S %N 0 0"),
    ROW("EVAL @idgen_sequence 1 {n} %m 1 %N"),
    ROW("EVAL @idgen_sequence 1 {n} a %n %N"),
    ROW("HSET {i} next %N"),
    ROW("HSET {i} clock %t"),
    ROW_LIKE("HGETALL {i}", LIKE_PAIRS),
    ROW_LIKE("HGETALL {n}", LIKE_PAIRS),
    ROW("DEL {i} {n}"),

    /* dedup */
    ROW("EVAL @dedup_mark 1 {d}1 s %t 0 0 " PRINT " %m %m"),
    ROW("EVAL @dedup_mark 1 {d}2 s 0 0 0 " PRINT " %m %m %m"),
    ROW("EVAL @dedup_mark 2 {d}1 {d}op s %t 1 %t " PRINT " %m"),
    ROW("EVALSHA $dedup_mark 2 {d}1 {d}op s %t 1 %t fedcba9876543210 %m"),
    ROW("EVAL @dedup_mark 1 {d}count c %t 0 0 " PRINT " %m %v"),
    ROW("EVAL @dedup_window_mark 1 {d}window %t 0 4 0 0 " PRINT " %m %m"),
    ROW("EVAL @dedup_window_mark 1 {d}window %t 1 4 0 0 " PRINT " %m %m"),
    ROW("EVAL @dedup_window_mark 2 {d}window {d}wop %t 0 4 0 %t " PRINT " %m"),
    ROW("EVAL @dedup_window_seen 1 {d}window %m %m"),
    ROW("EVAL @dedup_window_seen 1 {d}window"),
    ROW("EVAL @dedup_window_forget 1 {d}window %m %m"),
    ROW_LIKE("SMEMBERS {d}1", LIKE_SET),
    ROW("DEL {d}1 {d}op {d}wop"),
    ROW("DEL {d}count {d}window"),

    /* who processes it */
    ROW_LIKE("EVAL @idempotency 1 {o} begin " ALICE " %t %t same alice", LIKE_CLOCK),
    ROW_LIKE("EVAL @idempotency 1 {o} begin " BOB " %t %t same bob", LIKE_CLOCK),
    ROW_LIKE("EVAL @idempotency 1 {o} begin " BOB " %t %t %m bob", LIKE_CLOCK),
    ROW_LIKE("EVAL @idempotency 1 {o} extend " ALICE " %t %t", LIKE_CLOCK),
    ROW_LIKE("EVALSHA $idempotency 1 {o} finish " ALICE " %t %t %v", LIKE_CLOCK),
    ROW_LIKE("EVAL @idempotency 1 {o} abandon " BOB " %t %t", LIKE_CLOCK),
    ROW_LIKE("EVAL @idempotency 1 {o} read " BOB " %t %t", LIKE_CLOCK),
    ROW("HMGET {o} state token owner attempt fingerprint result"),
    ROW_LIKE("PTTL {o}", LIKE_MS),
    ROW("DEL {o}"),

    /* sessions */
    ROW_LIKE("EVAL @session_touch 2 {u} {u}events %m %t 3 1 %v 0", LIKE_CLOCK),
    ROW_LIKE("EVAL @session_touch 2 {u} {u}events %m %t 0 0 %v 0", LIKE_CLOCK),
    ROW_LIKE("EVAL @session_touch 3 {u} {u}events {u}op %m %t 2 1 %v %t", LIKE_CLOCK),
    ROW_LIKE("EVAL @session_read 2 {u} {u}events %n 100000 160", LIKE_CLOCK),
    ROW("EVAL @session_end 2 {u} {u}events %m"),
    ROW("LRANGE {u}events 0 -1"),
    ROW("DEL {u}events"),
    ROW("DEL {u} {u}op"),

    /* rankings, permissions, presence */
    ROW("EVAL @ranking_submit 1 {r} high add %t 3 %m %n %m %n"),
    ROW("EVAL @ranking_submit 1 {r} high best 0 0 %m %N"),
    ROW("EVAL @ranking_drop 1 {r} high remove %m"),
    ROW("ZRANGE {r} 0 -1 WITHSCORES"),
    ROW("EVAL @ranking_submit 2 " TURNS " low-earlier best %t 4 %m %n %m %n"),
    ROW("EVAL @ranking_submit 2 " TURNS " low-earlier set %t 4 %m %n %m %N"),
    ROW("EVAL @ranking_drop 2 " TURNS " low-earlier trim %n 3"),
    ROW("ZRANGE {t} 0 -1 WITHSCORES"),
    ROW_LIKE("HGETALL {t}turns", LIKE_PAIRS),
    ROW("DEL {t}"),
    ROW("DEL {t}turns"),
    ROW("EVAL @permission_write 1 {p} %t SET u5 %w 7 GET u5 0"),
    ROW("EVAL @permission_write 1 {p} %t SET %y %w %z"),
    ROW("EVAL @permission_swap 1 {p} %t u5 10 %n 3"),
    ROW("EVAL @permission_swap 1 {p} 0 u5 10 3 %n"),
    ROW("GET {p}"),
    ROW("EVAL @presence_set 1 {a}1 PEXPIRE %t %b %b"),
    ROW("EVAL @presence_set 1 {a}2 PEXPIREAT %a %b %b"),
    ROW("GET {a}1"),
    ROW_LIKE("PTTL {a}1", LIKE_MS),
    ROW("EVAL @active_mark 1 {h}1 %a %m %m"),

    /* keys of other types stay unchanged */
    ROW("RPUSH {c} %v"),
    ROW("SET {f} %v"),
    ROW("SET {d}1 %v"),
    ROW("SADD {d}window %m"),
    ROW("SET {o} %v"),
    ROW("SADD {u} %m"),
    ROW("SET {r} %v"),
    ROW("DEL {c} {f} {d}1 {d}window {o} {u} {r}"),
    ROW("DEL {c} {f} {d}1 {d}window {o} {u} {r}"),
    END,
};
