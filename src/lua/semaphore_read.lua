-- Tells how a semaphore stands.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. KEYS[3]: the queue; not used. KEYS[4]: until when each ticket keeps its
--   place, a zset of tickets by TIME in ms.
-- Reply: limit (0: it was not set), permits that are out, who has them, who waits.
-- Run twice: the same again. Nothing is written.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit = redis.call('HGET', KEYS[2], 'limit')
local holders = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
local waiting = redis.call('ZCOUNT', KEYS[4], '(' .. string.format('%.0f', now), '+inf')
local used = 0
if holders > 0 then -- and it does not count what has run out, and is still there
  used = tonumber(redis.call('HGET', KEYS[2], 'used') or '0')
  local out = redis.call('ZCARD', KEYS[1]) - holders
  for at = 0, out - 1, 1000 do
    local tokens = redis.call('ZRANGE', KEYS[1], at, math.min(at + 999, out - 1))
    for _, has in ipairs(redis.call('HMGET', KEYS[2], unpack(tokens))) do
      used = used - (has or 0)
    end
  end
end
return {tonumber(limit or '0'), used, holders, waiting}
