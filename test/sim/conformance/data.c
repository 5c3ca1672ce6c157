/* The scripts of src/data, and foreign values in their keys. */
#include "sim/conformance/conformance.h"

#define WIDE "-9223372036854775808 9223372036854775807"
#define PRINT "0123456789abcdef"
#define ALICE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BOB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TURNS "{t} {t}turns"

// clang-format off
const conformance_row_t conformance_data[] = {
    /* counters */
    ROWS(
      "EVAL @counter_add 1 {c} %i " WIDE " 0 0 1|EVAL @counter_add 1 {c} %i " WIDE " %t 1 0|"
      "EVAL @counter_add 1 {c} 7 %i %i %t 0 1|EVALSHA $counter_add 1 {c} -7 %i %i 0 0 1|"
      "EVAL @counter_once 2 {c} {c}one %i %t 0 0 0 x|"
      "EVAL @counter_once 2 {c} {c}two 5 %t %t 1 0 x|"
      "EVALSHA $counter_once 2 {c} {c}two 5 %t %t 0 0 x|"
      "EVAL @counter_once 2 {c} {c}ops %i 5000 0 0 3 %m|"
      "EVALSHA $counter_once 2 {c} {c}ops 5 %t %t 1 3 %m|HMGET {c}ops first next s0 s1|"
      "DEL {c}ops|GET {c}|GET {c}one|SET {c} %i|DEL {c} {c}one|DEL {c} {c}two|"
      "EVAL @counter_fields 1 {f} 0 0 %m %i " WIDE "|"
      "EVAL @counter_fields 1 {f} %t 1 a %i " WIDE " b 1 -5 %i|DEL {f}"),
    ROWS_LIKE(LIKE_MS, "PTTL {c}|PTTL {f}"),
    ROWS_LIKE(LIKE_PAIRS,
      "EVAL @counter_all 1 {f} %n 100000|EVAL @counter_all 1 {f} 20 100000|HGETALL {f}"),
    /* ids */
    ROWS(
      "EVAL @idgen_segment 1 {i} 10 110 0 %S 1 0 0|"
      "EVAL @idgen_segment 1 {i} 10 110 %N %S 1 0 0|"
      "EVALSHA $idgen_segment 1 {i} %n 100 0 %S %N 0 0|EVAL @idgen_sequence 1 {n} %m 1 %N|"
      "EVAL @idgen_sequence 1 {n} a %n %N|HSET {i} next %N|HSET {i} clock %t|DEL {i} {n}"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL {i}|HGETALL {n}"),
    /* dedup */
    ROWS(
      "EVAL @dedup_mark 1 {d}1 s %t 0 0 " PRINT " %m %m|"
      "EVAL @dedup_mark 1 {d}2 s 0 0 0 " PRINT " %m %m %m|"
      "EVAL @dedup_mark 2 {d}1 {d}op s %t 1 %t " PRINT " %m|"
      "EVALSHA $dedup_mark 2 {d}1 {d}op s %t 1 %t fedcba9876543210 %m|"
      "EVAL @dedup_mark 1 {d}count c %t 0 0 " PRINT " %m %v|"
      "EVAL @dedup_window_mark 1 {d}window %t 0 4 0 0 " PRINT " %m %m|"
      "EVAL @dedup_window_mark 1 {d}window %t 1 4 0 0 " PRINT " %m %m|"
      "EVAL @dedup_window_mark 2 {d}window {d}wop %t 0 4 0 %t " PRINT " %m|"
      "EVAL @dedup_window_seen 1 {d}window %m %m|EVAL @dedup_window_seen 1 {d}window|"
      "EVAL @dedup_window_forget 1 {d}window %m %m|DEL {d}1 {d}op {d}wop|DEL {d}count {d}window"),
    ROWS_LIKE(LIKE_SET, "SMEMBERS {d}1"),
    /* who processes it */
    ROWS_LIKE(LIKE_CLOCK,
      "EVAL @idempotency 1 {o} begin " ALICE " %t %t same alice|"
      "EVAL @idempotency 1 {o} begin " BOB " %t %t same bob|"
      "EVAL @idempotency 1 {o} begin " BOB " %t %t %m bob|"
      "EVAL @idempotency 1 {o} extend " ALICE " %t %t|"
      "EVALSHA $idempotency 1 {o} finish " ALICE " %t %t %v|"
      "EVAL @idempotency 1 {o} abandon " BOB " %t %t|EVAL @idempotency 1 {o} read " BOB " %t %t"),
    ROWS("HMGET {o} state token owner attempt fingerprint result|DEL {o}"),
    ROWS_LIKE(LIKE_MS, "PTTL {o}"),
    /* sessions */
    ROWS_LIKE(LIKE_CLOCK,
      "EVAL @session_touch 2 {u} {u}events %m %t 3 1 %v 0|"
      "EVAL @session_touch 2 {u} {u}events %m %t 0 0 %v 0|"
      "EVAL @session_touch 3 {u} {u}events {u}op %m %t 2 1 %v %t|"
      "EVAL @session_read 2 {u} {u}events %n 100000 160"),
    ROWS("EVAL @session_end 2 {u} {u}events %m|LRANGE {u}events 0 -1|DEL {u}events|DEL {u} {u}op"),
    /* rankings, permissions, presence */
    ROWS(
      "EVAL @ranking_submit 1 {r} high add %t 3 %m %n %m %n|"
      "EVAL @ranking_submit 1 {r} high best 0 0 %m %N|EVAL @ranking_drop 1 {r} high remove %m|"
      "ZRANGE {r} 0 -1 WITHSCORES|"
      "EVAL @ranking_submit 2 " TURNS " low-earlier best %t 4 %m %n %m %n|"
      "EVAL @ranking_submit 2 " TURNS " low-earlier set %t 4 %m %n %m %N|"
      "EVAL @ranking_drop 2 " TURNS " low-earlier trim %n 3|ZRANGE {t} 0 -1 WITHSCORES|DEL {t}|"
      "DEL {t}turns|EVAL @permission_write 1 {p} %t SET u5 %w 7 GET u5 0|"
      "EVAL @permission_write 1 {p} %t SET %y %w %z|EVAL @permission_swap 1 {p} %t u5 10 %n 3|"
      "EVAL @permission_swap 1 {p} 0 u5 10 3 %n|GET {p}|"
      "EVAL @presence_set 1 {a}1 PEXPIRE %t %b %b|EVAL @presence_set 1 {a}2 PEXPIREAT %a %b %b|"
      "GET {a}1|EVAL @active_mark 1 {h}1 %a %m %m"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL {t}turns"),
    ROWS_LIKE(LIKE_MS, "PTTL {a}1"),
    /* keys of other types stay unchanged */
    ROWS(
      "RPUSH {c} %v|SET {f} %v|SET {d}1 %v|SADD {d}window %m|SET {o} %v|SADD {u} %m|SET {r} %v|"
      "DEL {c} {f} {d}1 {d}window {o} {u} {r}|DEL {c} {f} {d}1 {d}window {o} {u} {r}"),
    END,
};
// clang-format on
