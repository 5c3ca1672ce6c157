-- The record of how far a series is archived: who leads now claims it, and writes into it which day is done.
-- KEYS[1]: the record, a hash of term, the number of the last leader who claimed it, and day, the last one that is done,
--   a number such as 20261121. ARGV[1]: our term. ARGV[2]: '0' to claim it, or the day that is done. ARGV[3]: for how
--   long the record is kept after this, in milliseconds.
-- Reply: {how, day, ms}: 1 it was done; 0 a later leader has claimed it, and nothing was done; 2 to be claimed (again)
--   first, and nothing was done; the last day that is done, 0 if there is none; the server's time in milliseconds since
--   1970. -1: what is there is no record.
-- Run twice: the same again.
--
-- Of two who think that they lead, the one with the smaller term can write nothing once the other one has claimed it.
local function number(text, max)
  local n = (text == '0' or string.match(text, '^[1-9]%d*$')) and tonumber(text)
  return n and n <= max and n
end

local was = redis.call('HMGET', KEYS[1], 'term', 'day')
local term = number(was[1] or '0', 9007199254740992) -- 2^53
local day = number(was[2] or '0', 99991231)
local month = day and math.floor(day / 100) % 100
if not term or not day or (was[2] and not was[1]) or (day > 0 and (month < 1 or month > 12)) then
  return -1
end
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
local ours, done = tonumber(ARGV[1]), tonumber(ARGV[2])
if term > ours then
  return {0, day, ms}
end
if done > 0 and term ~= ours then
  return {2, day, ms}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3]) -- where this is refused nothing shall have been written
if done == 0 then
  redis.call('HSET', KEYS[1], 'term', ARGV[1])
elseif done > day then
  redis.call('HSET', KEYS[1], 'day', ARGV[2])
  day = done
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, day, ms}
