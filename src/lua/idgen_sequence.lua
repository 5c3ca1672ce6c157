-- Takes the next ids of a kind out.
-- KEYS[1]: a hash, a field for each kind: the last id that somebody was given. It has no ttl.
-- ARGV[1]: the kind. ARGV[2]: how many. ARGV[3]: the last of them, if they are the first of all; '': that would leave its
--   range.
-- Reply: the last of them, a string. If it would leave its range that is an error, and nothing is changed.
-- Run twice: takes out twice.
--
-- Numbers up to 2^63 do not fit into Lua's: HINCRBY adds.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
elseif ARGV[3] == '' then
  return redis.error_reply('ERR increment or decrement would overflow')
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return redis.call('HGET', KEYS[1], ARGV[1])
