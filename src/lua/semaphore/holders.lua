-- Lists the holders of a semaphore; of too many, those with the latest expiry.
-- KEYS: see semaphore/acquire. ARGV[1]: most holders that are listed, 1 to 1000.
-- Reply: for each holder its token, its permits (0: unknown), and the rest of its lease in ms, at
--   least 1.
-- Run twice: the same. Nothing is written.
--@include stored
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', alive, 'WITHSCORES', 'LIMIT', 0,
  ARGV[1])
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
