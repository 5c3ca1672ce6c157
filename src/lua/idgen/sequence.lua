-- Takes the next ids of a sequence.
-- KEYS[1]: a hash with a field per sequence: the last id that was given. It has no ttl.
-- ARGV[1]: the sequence. ARGV[2]: the number of ids. ARGV[3]: the last of them if no id was given
--   before; '': out of range.
-- Reply: the last of them, a string. -1: the field holds no integer of 64 bits. If the last one
--   would leave its range, that is an error. In both cases nothing is changed.
-- Run twice: takes ids twice.
--
-- Numbers up to 2^63 do not fit into doubles: HINCRBY adds, and they are compared as text.
local last = redis.call('HGET', KEYS[1], ARGV[1])
if last then
  local minus, digits = string.match(last, '^(%-?)([1-9]%d*)$')
  local most = minus == '-' and '9223372036854775808' or '9223372036854775807'
  if last ~= '0' and (not digits or #digits > #most or (#digits == #most and digits > most)) then
    return -1
  end
  redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
elseif ARGV[3] == '' then
  return redis.error_reply('ERR increment or decrement would overflow')
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return redis.call('HGET', KEYS[1], ARGV[1])
