-- Reads the number left to count of a latch. Makes a missing latch, so that all users agree on its
-- count.
-- KEYS[1]: the latch (see latch/count). ARGV[1]: the count. ARGV[2]: the ttl in ms, from the time
--   when it is made. ARGV[3]: `made` of the latch that is waited for; '': any latch.
-- Reply: {n, made}: n is left to count; -1: the latch has another count; -2: the latch that is
--   waited for is forgotten, and none is made.
-- Run twice: the same.
--@include stored
local latch = redis.call('HMGET', KEYS[1], 'count', 'made')
if ARGV[3] ~= '' and latch[2] ~= ARGV[3] then
  return -2
end
if latch[1] and latch[1] ~= ARGV[1] then
  return -1
end
if latch[2] and not whole(latch[2], 1) then
  return foreign('when the latch was made')
end
if not latch[2] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE not a latch')
  end
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('HSET', KEYS[1], 'count', ARGV[1], 'made', now)
  local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(expires) == 'table' then -- refused: no key without a ttl may stay
    redis.call('DEL', KEYS[1])
    return expires
  end
  return {tonumber(ARGV[1]), now}
end
return {math.max(ARGV[1] - (redis.call('HLEN', KEYS[1]) - 2), 0), latch[2]}
