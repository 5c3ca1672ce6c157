/* Commands that are not about one type of values: scripts, connections, channels. */
#include "sim/conformance/conformance.h"

// clang-format off
const conformance_row_t conformance_belays[] = {
    ROWS_LIKE(LIKE_MS,
      "EVAL @lock_acquire 1 %L %o %t 0|EVALSHA $lock_acquire 1 %L %o %t %t|"
      "EVAL @lock_acquire 1 %L %o %e %t|EVAL @lock_acquire 1 %L %o %t %e|"
      "EVAL @lock_acquire 1 %k %o %t %t|PTTL %L|PTTL %F|PTTL %C"),
    ROWS_OF(LIKE_MS, ROW_PAUSE, "EVAL @lock_acquire 1 %L %o %x %t"),
    ROWS(
      "EVAL @lock_extend 1 %L %o %t 0|EVAL @lock_extend 1 %L %o %t %t|"
      "EVALSHA $lock_extend 1 %L %o %t %t|EVAL @lock_extend 1 %L %o %e %e|"
      "EVAL @lock_extend 1 %k %o %t 0|EVAL @lock_release 1 %L %o|EVALSHA $lock_release 1 %L %o %H|"
      "EVAL @lock_release 1 %k %o|EVAL @lock_release 1 %L %o %H %o 1|DEL %C|"
      "EVAL @fence_accept 1 %F %N %o %t|"
      "EVALSHA $fence_accept 1 %F %N %o %t|EVAL @fence_accept 1 %F %N %o %e|"
      "EVAL @fence_guard 2 %F %k %N %o %*|EVAL @fence_guard 2 %F %k %N %o %*|"
      "EVALSHA $fence_guard 2 %F %k %N %o %*|EVAL @fence_guard 1 %F %N|"
      "SCRIPT LOAD @lock_acquire|SCRIPT LOAD @lock_acquire_fenced|SCRIPT LOAD @quarantine|"
      "SCRIPT LOAD @fence_guard|SET %L %o PX %t|SET %L %o|HSET %L a b|DEL %L %F|GET %L|"
      "HSET %F number %N token %o|HSET %F number %N|HSET %F token %o|HDEL %F number token|"
      "SET %F %v|HLEN %F|HSET %Q server %S max_ttl 60000 since 0|"
      "HSET %Q server %S max_ttl 60000 since %N|HSET %Q max_ttl %t|HDEL %Q max_ttl|"
      "HDEL %Q since|DEL %Q|SET %Q %v"),
    ROWS_LIKE(LIKE_FENCE,
      "EVAL @lock_acquire_fenced 2 %L %F %o %t %t %t|"
      "EVALSHA $lock_acquire_fenced 2 %L %F %o %t 0 %t|"
      "EVAL @lock_acquire_fenced 2 %L %F %o %e %t %t|"
      "EVAL @lock_acquire_fenced 2 %L %F %o %t %t %e|"
      "EVAL @fence_read 1 %F|EVALSHA $fence_read 1 %F"),
    ROWS_LIKE(LIKE_QUARANTINE,
      "EVAL @quarantine 1 %Q %S %t %t|EVALSHA $quarantine 1 %Q %S 60000 %t|"
      "EVAL @quarantine 1 %Q %S 60000 60000|EVAL @quarantine 1 %Q %S 60000 %e"),
    ROWS_LIKE(LIKE_CLOCK, "HMGET %F number token|HMGET %Q server max_ttl since"),
    END,
};

const conformance_row_t conformance_scripts[] = {
    ROWS(
      "EVAL @call 0 %*|EVAL @call 0 %*|EVAL @pcall 0 %*|EVALSHA $call 0 %*|"
      "EVAL @look 0 SET %k %v|EVAL @look 0 GET %k|EVAL @look 0 INCRBY %k %i|"
      "EVAL @look 0 HGET %k %m|EVAL @look 0 ZSCORE %k %m|EVAL @look 0 PING|EVAL @twice 1 %k %i|"
      "EVAL @undo 1 %k %v|EVAL @get 1 %k|EVAL @get 0|EVALSHA $get 1 %k|EVALSHA ^get 1 %k|"
      "EVAL @words %i %v %v %v|EVAL @words 2 %v %v %v %v|EVAL @keys 2 %k %v|"
      "EVAL @argv 1 %k %v %i|EVAL @number 0 %i|EVAL @number 0 %f|EVAL @numbers 0 %i|"
      "EVAL @numbers 0 %f|EVAL @sum 0 %i|EVAL @sum 0 %v|EVAL @less 0 %v %v|"
      "EVAL @less_number 0 %v|EVAL @join 0 %v %i|EVAL @error 0 %v|EVAL @ok 0 %m|EVAL @err 0 %v|"
      "EVAL @raise 0 %v|EVAL @raise_table 0 %v|EVAL @many 1 %k|EVAL %V 0|EVAL %V 0|EVAL %V 0|"
      "EVAL %E 0|EVAL %E 0|EVAL %E 0|EVAL %E 0|SCRIPT LOAD %V|SCRIPT LOAD %E|SCRIPT LOAD @get|"
      "SCRIPT LOAD @call|SCRIPT FLUSH|SCRIPT FLUSH SYNC|SCRIPT FLUSH ASYNC|SCRIPT FLUSH %v|"
      "SCRIPT NOSUCH|EVALSHA $v1 0|EVALSHA %v 0|"
      "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0|EVAL return 1"),
    ROWS_OF(LIKE_BYTES, ROW_OWN_LIKE, "EVAL @safe 0 %*"),
    ROWS_LIKE(LIKE_TIME, "EVAL @time 0"),
    END,
};

/* The bytes of doubles from the library `struct`; and numbers as text. */
const conformance_row_t conformance_structs[] = {
    ROWS_OF(LIKE_BYTES, ROW_AS_IT_IS,
      "EVAL @pack 0 <d %q|EVAL @pack 0 <ddd %q %q %q|EVAL @pack 0 <dd %q|"
      "EVAL @pack_numbers 0 <dddd %f %z %q %i|EVAL @pack_value 0 <dd %d|EVAL @unpack 0 <d %u|"
      "EVAL @unpack 0 <dd %u %d|EVAL @unpack 0 <d %u %q|EVAL @unpack_there 0 <d %u %f|"
      "EVAL @back 0 <ddddddd %q %z %i %f %q %q %q"),
    ROWS(
      "EVAL @arithmetic 0 %q %q|EVAL @arithmetic 0 %f %f|EVAL @arithmetic 0 %i %z|"
      "EVAL @log 1 %k %n|EVAL @log 1 %k %n|ZCARD %k|ZCOUNT %k -inf (50|ZCOUNT %k (49 +inf|"
      "ZCOUNT %k (10 (2000|ZRANGEBYSCORE %k (100 110 WITHSCORES LIMIT 0 3|"
      "ZRANGE %k 0 0 WITHSCORES|ZRANGE %k -1 -1 WITHSCORES|ZREMRANGEBYSCORE %k -inf (%d|"
      "ZREMRANGEBYSCORE %k -inf 1000|ZREMRANGEBYSCORE %k 3000 +inf"),
    END,
};

const conformance_row_t conformance_connections[] = {
    ROWS(
      "PING|PING %v|CLIENT SETNAME %m|CLIENT SETNAME name-of-mine|SET %k %v|GET %k|NOSUCH|"
      "NOSUCH %v %v %i|%v|%v %v|GETT %k"),
    ROWS_OF(LIKE_BYTES, ROW_AS_IT_IS,
      "CLIENT KILL ID 999999999|CLIENT KILL ID abc|CLIENT KILL ID 0|CLIENT KILL ID -1|"
      "CLIENT NOSUCH|CLIENT|HELLO 1|HELLO 4|HELLO abc|HELLO 2 NOSUCH|COMMAND NOSUCH|FLUSHALL|"
      "FLUSHALL SYNC|FLUSHALL NOSUCH"),
    ROWS_OF(LIKE_HELLO, ROW_AS_IT_IS, "HELLO|HELLO 2|HELLO 2 SETNAME %m|HELLO 3"),
    ROWS_OF(LIKE_COMMANDS, ROW_AS_IT_IS,
      "COMMAND INFO bitfield_ro ssubscribe delifeq delex|COMMAND INFO SET GET %k"),
    ROWS_OF(LIKE_INFO, ROW_AS_IT_IS, "INFO server|INFO replication|INFO"),
    ROWS_LIKE(LIKE_TIME, "TIME"),
    END,
};

/* Commands of a subscribed connection in RESP3 and in RESP2, with changes between both. */
const conformance_row_t conformance_protocols[] = {
    ROWS_OF(LIKE_HELLO, ROW_AS_IT_IS, "HELLO|HELLO 3|HELLO 3|HELLO 3 SETNAME %m|HELLO 2"),
    ROWS_OF(LIKE_BYTES, ROW_AS_IT_IS, "HELLO 3 NOSUCH"),
    ROWS_OF(LIKE_COMMANDS, ROW_AS_IT_IS, "COMMAND INFO bitfield_ro delex"),
    ROWS_OF(LIKE_INFO, ROW_AS_IT_IS, "INFO server"),
    ROWS_LIKE(LIKE_PAIRS, "HGETALL %k"),
    ROWS("HSET %k %m %v|GET %k"),
    END,
};

const conformance_row_t conformance_pubsub[] = {
    ROWS(
      "SUBSCRIBE %c|SUBSCRIBE %c %c %c|PUBLISH %c %v|PUBLISH %c %v|PUBLISH %c %v|"
      "EVAL @publish 0 %c %v|EVAL @call 0 SUBSCRIBE %c|EVAL @look 0 PUBLISH %c %v|PING|PING %v|"
      "GET %k|SET %k %v|NOSUCH|GET"),
    ROWS_OF(LIKE_BYTES, ROW_AS_IT_IS, "UNSUBSCRIBE %c|UNSUBSCRIBE %c %c %c %c"),
    END,
};
// clang-format on
