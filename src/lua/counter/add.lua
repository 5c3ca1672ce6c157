-- Adds to a counter if the value before is within bounds, and sets the ttl of a new one.
-- KEYS[1]: the counter. ARGV[1]: the number to add. ARGV[2], ARGV[3]: the least and the greatest
--   value before. ARGV[4]: the ttl in milliseconds; 0: no end. ARGV[5]: 1 if each add sets the ttl;
--   0: only a new counter gets it. ARGV[6]: 1 if a value out of bounds is a result; 0: it is an
--   overflow.
-- Reply: {applied, value}: 1, or 0 if the value is out of bounds; the value now, as digits.
-- Run twice: adds twice.
--
-- All numbers have 64 bits and stay text, because numbers in Lua are doubles. They are compared by
-- their digits, and added by INCRBY; the value is then read again.
--@include int64
--@include int64_order

local before = redis.call('GET', KEYS[1])
if before and not is_int64(before) then
  return redis.error_reply('ERR value is not an integer or out of range')
end
local value = before or '0'
if not (at_most(ARGV[2], value) and at_most(value, ARGV[3])) then
  if ARGV[6] == '1' then
    return {0, value}
  end
  return redis.error_reply('ERR increment or decrement would overflow')
end
if not before then
  if ARGV[4] == '0' then
    redis.call('SET', KEYS[1], ARGV[1])
  else
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
  end
  return {1, ARGV[1]}
end
if ARGV[5] == '1' then
  redis.call('SET', KEYS[1], '', 'NX') -- no effect, because it exists; refused if memory is out
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
redis.call('INCRBY', KEYS[1], ARGV[1])
local value_now = redis.call('GET', KEYS[1])
if ARGV[5] == '1' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4]) -- last, because it deletes the key if the ttl is over
end
return {1, value_now}
