-- Reads the holders of a read/write lock. Of many readers it returns those with the longest
-- remaining time.
-- KEYS[1] to KEYS[5]: the lock (see rwlock_read). KEYS[6]: the counter, a hash: number, token.
--   ARGV[1]: the command that publishes releases: 'PUBLISH' or 'SPUBLISH'. ARGV[2]: the maximum
--   number of holders.
-- Reply: the last fencing number, or ''; length of the queues; listening connections, or -1; 0; 0;
--   ''; number of holders; and for each returned holder its token, its remaining milliseconds (-1:
--   no end), 1, and 1 if it is the writer, else 0. Numbers are bounded, and at most 257 bytes of a
--   token are returned, because other programs may have written it.
-- Run twice: the same again. Nothing is written.
local writer = redis.call('GETRANGE', KEYS[1], 0, 256)
local left = redis.call('PTTL', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local count = redis.call('ZCOUNT', KEYS[2], alive, '+inf')
local readers = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', alive,
  'WITHSCORES', 'LIMIT', 0, ARGV[2])
local waiting = redis.call('ZCOUNT', KEYS[3], alive, '+inf')
waiting = waiting + redis.call('ZCOUNT', KEYS[4], alive, '+inf')
waiting = waiting + redis.call('ZCOUNT', KEYS[5], alive, '+inf')
local number = redis.call('HGET', KEYS[6], 'number')
local count_of = ARGV[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local listening = redis.pcall('PUBSUB', count_of, KEYS[1] .. '::wake')

local holders = count + (left ~= -2 and 1 or 0)
local reply = {string.sub(number or '', 1, 21), waiting, listening[2] or -1, 0, 0, '', holders}
local function add(token, rest, writes)
  local n = #reply
  if n < 7 + 4 * tonumber(ARGV[2]) then
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = token, rest, 1, writes
  end
end
if left ~= -2 then
  add(writer, left < 0 and -1 or math.max(left, 1), 1)
end
for i = 1, #readers, 2 do
  add(string.sub(readers[i], 1, 257), math.min(2 ^ 53, readers[i + 1] - now), 0)
end
return reply
