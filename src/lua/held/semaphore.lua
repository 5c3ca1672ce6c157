-- Tells who has permits of a semaphore, and how it stands; of too many those who have them for longest.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. KEYS[3]: until when each ticket in the queue keeps its place, a zset of
--   tickets by TIME in ms. ARGV[1]: how releases are published: 'PUBLISH', 'SPUBLISH'. ARGV[2]: how many holders at most,
--   1 to 1000.
-- Reply: ''; places in the queue; connections that listen, or -1; the limit, 0: it was not set; permits that are out; '';
--   how many have some; and of each that does its token, for how many milliseconds, its permits (0: that is not known), 0.
--   What is no number is 0; numbers are bound, and of a token at most 257 bytes are told, because others may have written it.
-- Run twice: the same again. Nothing is written.
local function bound(text, most)
  return math.min(most, math.max(0, tonumber(text or '') or 0)) -- in this order, which makes 0 of what is not a number
end

local most = 2 ^ 32 - 1
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local count = redis.call('ZCOUNT', KEYS[1], alive, '+inf')
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', alive, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local set = redis.call('HMGET', KEYS[2], 'limit', 'used')
local waiting = redis.call('ZCOUNT', KEYS[3], alive, '+inf')
local count_of = ARGV[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local listening = redis.pcall('PUBSUB', count_of, KEYS[1] .. '::wake')

local used = count > 0 and bound(set[2], 2 ^ 53) or 0
local out = count > 0 and redis.call('ZCARD', KEYS[1]) - count or 0 -- that have run out, and are counted still
for at = 0, out - 1, 1000 do
  local tokens = redis.call('ZRANGE', KEYS[1], at, math.min(at + 999, out - 1))
  for _, has in ipairs(redis.call('HMGET', KEYS[2], unpack(tokens))) do
    used = used - bound(has, 2 ^ 53)
  end
end

local reply = {'', waiting, listening[2] or -1, bound(set[1], most), bound(used, most), '', count}
for i = 1, #found, 2 do
  local n = #reply
  local has = redis.call('HGET', KEYS[2], found[i])
  reply[n + 1], reply[n + 2] = string.sub(found[i], 1, 257), math.min(2 ^ 53, found[i + 1] - now)
  reply[n + 3], reply[n + 4] = bound(has, most), 0
end
return reply
