-- Reads the holders and the state of a semaphore. Of many holders it returns those with the longest
-- remaining time.
-- KEYS[1]: the holders, a zset of tokens by the TIME in ms of their end. KEYS[2]: the permits, a
--   hash: the number of each token; used, their sum; limit, if it was set. KEYS[3]: the deadlines
--   of the tickets in the queue, a zset of tickets by TIME in ms. ARGV[1]: the command that
--   publishes releases: 'PUBLISH' or 'SPUBLISH'. ARGV[2]: the maximum number of holders, 1 to 1000.
-- Reply: ''; length of the queue; listening connections, or -1; the limit, 0: not set; held
--   permits; ''; number of holders; and for each returned holder its token, its remaining
--   milliseconds, its permits (0: unknown), 0. Text that is no number counts as 0. Numbers are
--   bounded, and at most 257 bytes of a token are returned, because other programs may have written
--   it.
-- Run twice: the same again. Nothing is written.
local function bound(text, most)
  return math.min(most, math.max(0, tonumber(text or '') or 0)) -- not a number becomes 0
end

local most = 2 ^ 32 - 1
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local count = redis.call('ZCOUNT', KEYS[1], alive, '+inf')
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', alive,
  'WITHSCORES', 'LIMIT', 0, ARGV[2])
local set = redis.call('HMGET', KEYS[2], 'limit', 'used')
local waiting = redis.call('ZCOUNT', KEYS[3], alive, '+inf')
local count_of = ARGV[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local listening = redis.pcall('PUBSUB', count_of, KEYS[1] .. '::wake')

local used = count > 0 and bound(set[2], 2 ^ 53) or 0
local out = count > 0 and redis.call('ZCARD', KEYS[1]) - count or 0 -- expired, still counted
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
