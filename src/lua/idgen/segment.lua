-- Takes a step of ids.
-- KEYS[1]: a hash: next, the first id that no process has; server, the identity of the server that
--   wrote next; clock, ARGV[6], ARGV[7] and ARGV[5] separated by spaces, if the ids follow the
--   clock. It has no ttl.
-- ARGV[1]: the step. ARGV[2]: the step plus a jump, by which next grows if ids may have been
--   forgotten: another server wrote next, or next is less than ARGV[3], the end of the caller's ids
--   ('0': none yet). ARGV[4]: the identity of this server; '': it is not compared. ARGV[5]: the
--   first value of next. ARGV[6]: ids per second of the server's clock, 1 to 1,000,000; '0': the
--   ids do not follow the clock. ARGV[7]: the skew in milliseconds.
-- Reply: next after this, a string: the ids are the step before it. A number of milliseconds, 1 to
--   1000: the clock is not there yet, and no id was given. -1: the key holds another hash; -2: its
--   clock is another one. If next would leave its range, that is an error, and no id was given.
-- Run twice: takes two steps.
--
-- With a clock, all ids are less than the clock's id, skew milliseconds ago. If ids may have been
-- forgotten, or nothing is stored, next continues at the clock's id now. So the second ids are
-- above the first ones, if the clock did not step back by more than the skew.
--
-- Numbers up to 2^63 do not fit into doubles: HINCRBY adds, and they are compared as text. If the
-- script is stopped halfway, ids are skipped.
local function less(a, b)
  return #a < #b or (#a == #b and a < b)
end
local known = redis.call('HMGET', KEYS[1], 'next', 'server', 'clock')
local text = known[1]
local digits = text and (text == '0' or string.match(text, '^[1-9]%d*$'))
if text and (not digits or less('9223372036854775807', text)) then
  return -1
elseif not text and redis.call('EXISTS', KEYS[1]) == 1 then
  return -1
end
local rate = tonumber(ARGV[6])
local clock = rate > 0 and ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[5]
if known[3] and known[3] ~= clock then
  return -2
end
local first = text or ARGV[5]
local lost = (text and ARGV[4] ~= '' and known[2] ~= ARGV[4]) or less(first, ARGV[3])
if less(first, ARGV[3]) then
  first = ARGV[3]
end
local wait = 0
if clock then
  local time = redis.call('TIME')
  local now = ARGV[5] + time[1] * rate + math.floor(time[2] * rate / 1000000)
  if now > 9007199254740991 then -- 2^53 - 1
    return redis.error_reply('ERR increment or decrement would overflow')
  end
  local there = string.format('%.0f', now)
  if (lost or not text) and less(first, there) then
    first = there
  end
  lost = false
  wait = math.ceil((first + ARGV[1] - now + ARGV[7] * rate / 1000) * 1000 / rate)
end
if first ~= text then
  redis.call('HSET', KEYS[1], 'next', first)
end
if clock and not known[3] then
  redis.call('HSET', KEYS[1], 'clock', clock)
end
if wait <= 0 then
  redis.call('HINCRBY', KEYS[1], 'next', lost and ARGV[2] or ARGV[1])
end
if ARGV[4] ~= '' and known[2] ~= ARGV[4] then
  redis.call('HSET', KEYS[1], 'server', ARGV[4])
end
return wait > 0 and math.min(wait, 1000) or redis.call('HGET', KEYS[1], 'next')
