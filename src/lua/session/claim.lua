-- Takes contexts that are due out of everybody else's sight, for a while.
-- KEYS[1]: the index, as session_index has it. ARGV[1]: so many at most. ARGV[2]: for how long, in milliseconds; less
--   than the index outlives its times.
-- Reply: until when, by this server's clock in milliseconds, and then they; nothing if there are none.
-- Run twice: takes others.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0) -- nothing; but then a server whose memory is full does not mind the rest
local till = string.format('%.0f', now + ARGV[2])
for i = 1, #due do
  redis.call('ZADD', KEYS[1], 'XX', till, due[i])
end
if #due > 0 then
  table.insert(due, 1, till)
end
return due
