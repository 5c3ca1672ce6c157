-- Proposes a fencing number: larger than the one that is stored, and no smaller than the clock.
-- KEYS[1]: the counter, a hash: number, token.
-- Reply: the number, as a string.
-- Run twice: a number that is as good.
--@include stored
local stored = redis.call('HGET', KEYS[1], 'number')
if stored and not whole(stored, 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
local number = time[1] * 1000000 + time[2]
if stored and number <= tonumber(stored) then
  number = tonumber(stored) + 1
end
if number >= 9007199254740992 then -- 2^53: from there on a number may be the one before it
  return redis.error_reply('ERR the fencing number is used up')
end
return string.format('%.0f', number)
