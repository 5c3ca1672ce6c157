-- Proposes a fencing number: larger than the one that is stored, and no smaller than the clock.
-- KEYS[1]: the counter, a hash: number, token.
-- Reply: the number, as a string.
-- Run twice: a number that is as good.
--@include stored
--@include next_number
local stored = redis.call('HGET', KEYS[1], 'number')
if stored and not whole(stored, 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
return next_number(stored, time) or used_up()
