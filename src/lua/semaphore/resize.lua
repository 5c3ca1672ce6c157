-- Sets the limit of a semaphore, wakes the first waiter of the queue (or all waiters without a
-- ticket if the queue is empty), and reads the state.
-- KEYS: see semaphore/acquire. ARGV[1]: the limit. ARGV[2]: the publish command, or ''.
-- Reply: {limit, used permits, number of holders, number of waiters}.
-- Run twice: the same.
--@include stored
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holders = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
local waiting = redis.call('ZCOUNT', KEYS[4], '(' .. string.format('%.0f', now), '+inf')
local set = redis.call('HMGET', KEYS[2], 'limit', 'used')
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
local known = redis.call('PEXPIRE', KEYS[2], 604800000) -- seven days; first, as in keep()
redis.call('HSET', KEYS[2], 'limit', ARGV[1])
if known == 0 then
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
if ARGV[2] ~= '' then
  redis.pcall(ARGV[2], KEYS[1] .. '::wake', first or '')
end
return {tonumber(ARGV[1]), used, holders, waiting}
