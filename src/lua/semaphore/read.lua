-- Reads the state of a semaphore.
-- KEYS: see semaphore/acquire.
-- Reply: {limit (0: none is set), used permits, number of holders, number of waiters}.
-- Run twice: the same. Nothing is written.
--@include stored
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local set = redis.call('HMGET', KEYS[2], 'limit', 'used')
local holders = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
local waiting = redis.call('ZCOUNT', KEYS[4], '(' .. string.format('%.0f', now), '+inf')
local used, limit = whole(set[2] or '0'), whole(set[1] or '0')
if holders == 0 then
  used = used and 0
elseif used then -- without permits that have expired and are still stored
  local out = redis.call('ZCARD', KEYS[1]) - holders
  for at = 0, out - 1, 1000 do
    local tokens = redis.call('ZRANGE', KEYS[1], at, math.min(at + 999, out - 1))
    for _, has in ipairs(redis.call('HMGET', KEYS[2], unpack(tokens))) do
      used = used - (whole(has or '0') or math.huge)
    end
  end
end
if not limit or not used or used < 0 then
  return foreign('the permits')
end
return {limit, used, holders, waiting}
