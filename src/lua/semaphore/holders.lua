-- Tells who has permits of a semaphore; of too many those who have them for longest.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. KEYS[3], KEYS[4]: not used. ARGV[1]: how many at most, 1 to 1000.
-- Reply: of each its token, its permits (0: that is not known), and for how much longer, in milliseconds, at least 1.
-- Run twice: the same again. Nothing is written.
--@include stored
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(' .. string.format('%.0f', now), 'WITHSCORES', 'LIMIT',
  0, ARGV[1])
local tokens, reply = {}, {}
for i = 1, #found, 2 do
  tokens[#tokens + 1] = found[i]
end
if #tokens == 0 then
  return reply
end
for i, has in ipairs(redis.call('HMGET', KEYS[2], unpack(tokens))) do
  reply[3 * i - 2] = tokens[i]
  local permits, out = whole(has or '0'), whole(found[2 * i])
  if not permits or not out then
    return foreign('the permits')
  end
  reply[3 * i - 1], reply[3 * i] = permits, out - now
end
return reply
