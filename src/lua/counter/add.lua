-- Adds to a counter, if the value before it is within bounds, and gives a new one its ttl.
-- KEYS[1]: the counter. ARGV[1]: what to add. ARGV[2], ARGV[3]: the least and the greatest value before it. ARGV[4]: the
--   ttl in milliseconds; 0: for ever. ARGV[5]: 1 if each add makes it live so long again; 0: only a new counter gets it.
--   ARGV[6]: 1 if a value out of bounds is an answer; 0: it is an overflow.
-- Reply: {applied, value}: 1, or 0 because the value is out of bounds; the value now, as digits.
-- Run twice: adds twice.
--
-- All numbers are of 64 bits, and stay text: Lua's are doubles. They are compared by their digits, and added by INCRBY,
-- whose reply would come as a double: the value is read again.
local function digits_at_most(a, b) -- of the same length
  local high_a, high_b = tonumber(string.sub(a, 1, -10)) or 0, tonumber(string.sub(b, 1, -10)) or 0
  if high_a ~= high_b then
    return high_a < high_b
  end
  return tonumber(string.sub(a, -9)) <= tonumber(string.sub(b, -9))
end

local function at_most(a, b)
  local minus_a, minus_b = string.sub(a, 1, 1) == '-', string.sub(b, 1, 1) == '-'
  if minus_a ~= minus_b then
    return minus_a
  end
  if minus_a then
    a, b = string.sub(b, 2), string.sub(a, 2)
  end
  if #a ~= #b then
    return #a < #b
  end
  return digits_at_most(a, b)
end

local function is_number(text)
  return (text == '0' or string.match(text, '^%-?[1-9]%d*$')) and #text <= 20 and
         at_most('-9223372036854775808', text) and at_most(text, '9223372036854775807')
end

local before = redis.call('GET', KEYS[1])
if before and not is_number(before) then
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
