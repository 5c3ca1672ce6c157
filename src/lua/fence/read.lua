-- Proposes a fencing number: larger than the stored one, and not below the clock.
-- KEYS[1]: the counter, a hash: number, token.
-- Reply: the number, as a string.
-- Run twice: another number with the same properties. Nothing is written.
--@include stored
--@include next_number
local stored = redis.call('HGET', KEYS[1], 'number')
if stored and not whole(stored, 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
return next_number(stored, time) or used_up()
