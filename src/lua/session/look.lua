-- Whether a context lives, of which it is due to be told that it has ended.
-- KEYS[1]: where it would be, as session_touch has it. ARGV[1]: its id.
-- Reply: when it ends unless it is touched again, by this server's clock, in milliseconds; 0 it does not live: nothing is
--   there, or another one, or something else. One that somebody has made to live for ever is looked for in a day.
-- Run twice: the same.
if redis.call('TYPE', KEYS[1])['ok'] ~= 'hash' or redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local left = redis.call('PTTL', KEYS[1])
return time[1] * 1000 + math.floor(time[2] / 1000) + (left < 0 and 86400000 or left)
