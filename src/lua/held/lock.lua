-- Reads the holders of a lock, or the leader of an election. Of many holds of one owner it returns
-- those with the longest remaining time.
-- KEYS[1]: the lock: its holder's token or owner. KEYS[2]: the counter, a hash: number, token, and
--   for an election value: the leader's value. KEYS[3], of a lock: its owner's holds, a hash (see
--   reentrant_acquire). KEYS[4], of a lock: the deadlines of the tickets in the queue, a zset of
--   tickets by TIME in ms. ARGV[1]: the command that publishes releases: 'PUBLISH' or 'SPUBLISH'.
--   ARGV[2]: the maximum number of holders.
-- Reply: the last fencing number, or ''; length of the queue; listening connections, or -1; 0; 0;
--   the owner or value; number of holders; and for each returned holder its token, its remaining
--   milliseconds (-1: no end), 1, 0. Numbers are bounded, and at most 257 bytes of a token are
--   returned, because other programs may have written it.
-- Run twice: the same again. Nothing is written.
local holder = redis.call('GETRANGE', KEYS[1], 0, 256)
local left = redis.call('PTTL', KEYS[1])
local counter = redis.call('HMGET', KEYS[2], 'number', 'value')
local fields = KEYS[3] and redis.call('HGETALL', KEYS[3]) or {}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local waiting = KEYS[4] and redis.call('ZCOUNT', KEYS[4], alive, '+inf') or 0
local count_of = ARGV[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local listening = redis.pcall('PUBSUB', count_of, KEYS[1] .. '::wake')

local owner
local holds = {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if field == 'owner' then
    owner = value
  elseif field ~= 'number' then
    local rest = tonumber(string.match(value, '^(%d+) ') or '0') - now
    if rest > 0 then
      holds[#holds + 1] = {string.sub(field, 1, 257), math.min(2 ^ 53, rest)}
    end
  end
end
local owned = owner == holder and holder ~= '' and #holds > 0
if not owned then
  holds = left ~= -2 and {{holder, left < 0 and -1 or math.max(left, 1)}} or {}
end
table.sort(holds, function(a, b)
  return a[2] > b[2]
end)

local called = owned and owner or (holder ~= '' and counter[2]) or ''
local number = string.sub(counter[1] or '', 1, 21)
local listeners = listening[2] or -1
local reply = {number, waiting, listeners, 0, 0, string.sub(called, 1, 256), #holds}
for i = 1, math.min(#holds, tonumber(ARGV[2])) do
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = holds[i][1], holds[i][2], 1, 0
end
return reply
