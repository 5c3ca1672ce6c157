-- Touches a context: extends the present one or starts a new one, and may add an event.
-- KEYS[1]: the context, a hash: id, touches, count (of events), kept (events in the list), since
--   (by this server's clock, in milliseconds). KEYS[2]: the list of its last events. KEYS[3], with
--   an operation id: the stored answer.
-- ARGV[1]: the id of a new context. ARGV[2]: ttl of both, in milliseconds. ARGV[3]: maximum of kept
--   events. ARGV[4]: '1': there is an event. ARGV[5]: the event. ARGV[6]: ttl of the stored answer.
-- Reply: {new, touches, count, kept, lost, since, due, id}: 1 or 0 for a new context; number of
--   touches; number of all events; of events in the list; of events that are missing there; start
--   and, without another touch, end by this server's clock; id. -1: KEYS[1] is no context; -2:
--   KEYS[2] is no list; -3: KEYS[3] is no answer.
-- Run twice: with an operation id the second run repeats the answer and changes nothing. Without
--   one it touches twice.
--
-- The list of a lost context does not belong to a new context without events. The calls that can be
-- refused come first: an empty answer, which does not count as one; a rewrite of the present
-- values; the ttls. A new key that gets no ttl is removed. A context without a touch was refused
-- and does not count.
--@include number
local function text(n)
  return string.format('%.0f', n)
end

local stored = #KEYS == 3 and redis.call('GET', KEYS[3])
if stored and stored ~= '' then
  local a = {}
  local at = 1
  for i = 1, 7 do
    local from, to, digits = string.find(stored, '^(%d+):', at)
    a[i] = from and number(digits)
    if not a[i] then
      return -3
    end
    at = to + 1
  end
  a[8] = string.sub(stored, at)
  if a[8] == '' or #a[8] > 64 then
    return -3
  end
  return a
end
local kind = redis.call('TYPE', KEYS[2])['ok']
local there = redis.call('HLEN', KEYS[1]) > 0
if kind ~= 'list' and kind ~= 'none' then
  return -2
end
local r = redis.call('HMGET', KEYS[1], 'id', 'touches', 'count', 'kept', 'since')
local id, touches, count, kept, since = r[1], number(r[2]), number(r[3]), number(r[4]), number(r[5])
local valid = id and #id >= 1 and #id <= 64 and touches and count and kept and since
if there and not (valid and kept <= count) then
  return -1
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not there or touches == 0 then
  there = false
  id, touches, count, kept, since = ARGV[1], 0, 0, 0, now
end

if #KEYS == 3 then
  redis.call('SET', KEYS[3], '', 'PX', ARGV[6])
end
local most = tonumber(ARGV[3])
local listed = ARGV[4] == '1' and most > 0
redis.call('HSET', KEYS[1], 'id', id, 'touches', text(touches), 'count', text(count),
  'kept', text(kept), 'since', text(since))
local refused = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(refused) == 'table' then
  if not there then
    redis.call('DEL', KEYS[1])
  end
  return refused
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
if kept == 0 and kind == 'list' then
  redis.call('UNLINK', KEYS[2])
end
local length = redis.call('LLEN', KEYS[2])
local room = listed and most - 1 or most
if length > room then
  redis.call('LTRIM', KEYS[2], text(length - room), -1)
  length = room
end
if listed then
  length = redis.call('RPUSH', KEYS[2], ARGV[5])
  kept = kept + 1
  redis.call('PEXPIRE', KEYS[2], ARGV[2]) -- last: it deletes the list if the ttl is over
end
kept = math.min(kept, most)
if ARGV[4] == '1' then
  count = count + 1
end
touches = touches + 1
redis.call('HSET', KEYS[1], 'touches', text(touches), 'count', text(count), 'kept', text(kept))
redis.call('PEXPIRE', KEYS[1], ARGV[2])

local lost = math.max(kept - length, 0)
local a = {there and 0 or 1, touches, count, length, lost, since, now + ARGV[2], id}
if #KEYS == 3 then
  local parts = {}
  for i = 1, 7 do
    parts[i] = text(a[i])
  end
  redis.call('SET', KEYS[3], table.concat(parts, ':') .. ':' .. id, 'PX', ARGV[6])
end
return a
