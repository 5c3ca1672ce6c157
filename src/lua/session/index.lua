-- Enters contexts in the index of when it is due to see whether they have ended, moves them, takes them out.
-- KEYS[1]: the index, a sorted set of contexts by when they are due, in milliseconds. ARGV[1]: for how long what is due
--   is kept, in milliseconds. ARGV[2]: 'NX': what is there already stays as it is; 'XX': what is not there is not
--   entered; or a time: what is not due then, as who claimed it has left it, stays as it is. Then for each of them: the
--   context, and when it is due, '0' for now, or '-' to take it out.
-- Reply: 0.
-- Run twice: the same again.
--
-- What was due for so long that nobody will ask any more is dropped, and the whole outlives the last of its times.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local keep = tonumber(ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - keep))
local last = now
for i = 3, #ARGV, 2 do
  last = math.max(last, tonumber(ARGV[i + 1]) or 0)
end
local left = string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), last - now + keep))
redis.call('PEXPIRE', KEYS[1], left) -- who may not do that shall not make it
for i = 3, #ARGV, 2 do
  local mode = ARGV[2] == 'NX' and 'NX' or 'XX'
  if ARGV[i + 1] == '-' then
    redis.call('ZREM', KEYS[1], ARGV[i])
  elseif ARGV[2] == 'NX' or ARGV[2] == 'XX' or redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[2] then
    redis.call('ZADD', KEYS[1], mode, ARGV[i + 1] == '0' and string.format('%.0f', now) or ARGV[i + 1], ARGV[i])
  end
end
redis.call('PEXPIRE', KEYS[1], left)
return 0
