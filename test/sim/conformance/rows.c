#include "sim/conformance/conformance.h"

// clang-format off
/* In every family, so that keys change their type. */
const conformance_row_t conformance_any[] = {
    ROWS(
      "SET %k %v|SET %k %i|HSET %k %m %v|SADD %k %m %m|ZADD %k %s %m|RPUSH %k %m %v|DEL %k|"
      "DEL %k %k|TYPE %k|EXISTS %k"),
    ROWS_LIKE(LIKE_MS, "PTTL %k"),
    END,
};

/* With %k always the same. */
const conformance_row_t conformance_final[] = {
    ROWS("TYPE %k|GET %k|ZRANGE %k 0 -1 WITHSCORES|LRANGE %k 0 -1"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL %k"),
    ROWS_LIKE(LIKE_SET, "SMEMBERS %k"),
    ROWS_LIKE(LIKE_MS, "PTTL %k"),
    END,
};

static const conformance_row_t strings[] = {
    ROWS(
      "GET %k|SET %k %v|SET %k %v NX|SET %k %v XX|SET %k %v GET|SET %k %v XX GET|"
      "SET %k %v NX GET|SET %k %v KEEPTTL|SET %k %v XX KEEPTTL GET|SET %k %v PX %t NX|"
      "SET %k %v PX %t XX GET|SET %k %v PX %e|SET %k %v NX XX|SET %k %v KEEPTTL PX %t|"
      "SET %k %v PX|GETRANGE %k %d %d|GETRANGE %k %i %i|SETRANGE %k %d %v|"
      "SETRANGE %k 536870912 %v|INCRBY %k %i|SET %k %f"),
    END,
};

static const conformance_row_t keys[] = {
    ROWS(
      "PEXPIRE %k %t|PEXPIRE %k %e|PEXPIREAT %k %a|PEXPIREAT %k %e|PEXPIREAT %k 1000|"
      "PERSIST %k|SET %k %v PX %t|SET %k %v|SET %k %v KEEPTTL|GET %k|DEL %k|UNLINK %k %k|"
      "EXISTS %k %k %k|TYPE %k|RENAME %k %k|HSET %k %m %v|SADD %k %m"),
    ROWS_LIKE(LIKE_MS, "PTTL %k"),
    ROWS_OF(LIKE_BYTES, ROW_PAUSE, "SET %k %v PX %x|PEXPIRE %k %x"),
    END,
};

static const conformance_row_t hashes[] = {
    ROWS(
      "HSET %k %m %v|HSET %k %m %v %m %v|HSET %k %m %v %m|HSET %k %m %i|HGET %k %m|"
      "HMGET %k %m %m %m|HLEN %k|HEXISTS %k %m|HDEL %k %m|HDEL %k %m %m %m|HINCRBY %k %m %i"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL %k"),
    END,
};

static const conformance_row_t sets[] = {
    ROWS("SADD %k %m|SADD %k %m %m %m|SADD %k %i %i|SCARD %k"),
    ROWS_LIKE(LIKE_SET, "SMEMBERS %k"),
    END,
};

static const conformance_row_t zsets[] = {
    ROWS(
      "ZADD %k %s %m|ZADD %k %s %m %s %m|ZADD %k %s %m %s %m %s %m|ZADD %k %f %m|"
      "ZADD %k NX %s %m|ZADD %k XX %s %m|ZADD %k INCR %s %m|ZADD %k NX INCR %s %m|"
      "ZADD %k XX INCR %s %m|ZADD %k INCR %s %m %s %m|ZADD %k NX XX %s %m|ZREM %k %m|"
      "ZREM %k %m %m %m|ZSCORE %k %m|ZCARD %k|ZCOUNT %k %r %r|ZRANK %k %m|ZREVRANK %k %m|"
      "ZRANGE %k %d %d|ZRANGE %k %i %i WITHSCORES|ZRANGE %k 0 -1 WITHSCORES|"
      "ZRANGE %k %d %d LIMIT %d %d|ZREVRANGE %k %d %d|ZREVRANGE %k %d %d WITHSCORES|"
      "ZRANGEBYSCORE %k %r %r|ZRANGEBYSCORE %k -inf +inf WITHSCORES LIMIT %d %d|"
      "ZRANGEBYSCORE %k %r %r LIMIT %i %i|ZRANGEBYSCORE %k %r %r LIMIT %d|"
      "ZREMRANGEBYRANK %k %d %d|ZREMRANGEBYSCORE %k %r %r|ZUNIONSTORE %k 1 %k|"
      "ZUNIONSTORE %k 2 %k %k|ZUNIONSTORE %k 2 %k %k AGGREGATE MIN|"
      "ZUNIONSTORE %k 2 %k %k AGGREGATE %m|ZUNIONSTORE %k %i %k %k|ZUNIONSTORE %k 0 %k"),
    END,
};

static const conformance_row_t lists[] = {
    ROWS(
      "RPUSH %k %v|RPUSH %k %m %m|RPUSH %k|LLEN %k|LRANGE %k 0 -1|LRANGE %k %d %d|"
      "LRANGE %k %i %i|LTRIM %k %d %d|LTRIM %k %i %i|LTRIM %k 0 -1|RENAME %k %k|TYPE %k"),
    END,
};

static const conformance_row_t bits[] = {
    ROWS(
      "GETBIT %k %b|GETBIT %k 4294967295|BITFIELD %k|BITFIELD %k GET %y %w|"
      "BITFIELD %k SET %y %w %z|BITFIELD %k INCRBY %y %w %z|BITFIELD %k INCRBY %y %w %i|"
      "BITFIELD %k SET u8 %w %z GET u8 %w INCRBY i5 %w %z|BITFIELD_RO %k GET %y %w GET i16 #1|"
      "BITFIELD_RO %k SET u8 0 1|BITFIELD_RO %k|SET %k %v|GET %k"),
    END,
};
// clang-format on

const conformance_family_t conformance_families[] = {
    {"strings", {strings}, 1, 2},
    {"keys", {keys}, 1, 2},
    {"hashes", {hashes}, 1, 2},
    {"sets", {sets}, 1, 2},
    {"zsets", {zsets}, 1, 2},
    {"lists", {lists}, 1, 2},
    {"bits", {bits}, 1, 2},
    {"belays", {conformance_belays}, 1, 2},
    {"kinds", {conformance_kinds}, 1, 2},
    {"data", {conformance_data}, 1, 2},
    {"cache", {conformance_cache}, 1, 2},
    {"scripts", {conformance_scripts}, 1, 2},
    {"structs", {conformance_structs}, 1, 2},
    {"connections", {conformance_connections}, 2, 2},
    {"pubsub", {conformance_pubsub}, 3, 2},
    {"pubsub3", {conformance_pubsub, conformance_protocols}, 3, 3},
    {"mixed", {strings, keys, hashes, sets, zsets, lists, bits, conformance_scripts}, 1, 2},
    {"mixed3", {strings, keys, hashes, sets, zsets, lists, bits, conformance_scripts}, 1, 3},
};

const size_t conformance_families_count =
    sizeof conformance_families / sizeof *conformance_families;
