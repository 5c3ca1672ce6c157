-- Adds to a counter, if the value before it is within bounds, and gives a new one its ttl.
-- KEYS[1]: the counter. ARGV[1]: what to add. ARGV[2], ARGV[3]: the least and the greatest value before it. ARGV[4]: the
--   ttl in milliseconds; 0: for ever. ARGV[5]: 1 if each add makes it live so long again; 0: only a new counter gets it.
--   ARGV[6]: 1 if a value out of bounds is an answer; 0: it is an overflow.
-- Reply: {applied, value}: 1, or 0 because the value is out of bounds; the value now, as digits.
-- Run twice: adds twice.
--
-- All numbers are of 64 bits, and stay text: Lua's are doubles. They are compared by their digits, and added by INCRBY,
-- whose reply would come as a double: the value is read again.
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
  redis.call('SET', KEYS[1], '', 'NX') -- it is there: this changes nothing, and is refused where there is no memory
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
redis.call('INCRBY', KEYS[1], ARGV[1])
local value_now = redis.call('GET', KEYS[1])
if ARGV[5] == '1' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4]) -- last: it deletes the key if the ttl is over
end
return {1, value_now}
