-- Somebody does something: his context lives on, or a new one begins; what he did is noted in it.
-- KEYS[1]: the context, a hash: id, touches, count (of events), kept (of them, in the list), since (by this server's
--   clock, in milliseconds). KEYS[2]: the list of its last events. KEYS[3], if there is an operation id: what that
--   operation was answered.
-- ARGV[1]: the id of a new context. ARGV[2]: for how long both live on, in milliseconds. ARGV[3]: so many events are
--   kept. ARGV[4]: '1': there is an event. ARGV[5]: the event. ARGV[6]: for how long the answer is kept.
-- Reply: {new, touches, count, kept, lost, since, due, id}: 1 or 0 whether the context is new; how often it was touched
--   and how many events came in all; how many of them are in the list, and are not though they should be; when it
--   began, and when it ends unless it is touched again, by this server's clock; its id. -1 what KEYS[1] holds is no
--   context; -2 what KEYS[2] holds is no list; -3 what KEYS[3] holds is no answer.
-- Run twice: with an operation id the second run answers the same as the first, and changes nothing. Without one it
--   touches twice.
--
-- A list that is left of a context that is gone is not that of one that has noted nothing yet. What might be refused comes
-- first: an empty answer is kept, which is none; who takes memory writes what is there once more; the ttls are set; what
-- has none is not left behind. A context that was refused after all, and so was not touched yet, is none.
--@include number
local function text(n)
  return string.format('%.0f', n)
end

local said = #KEYS == 3 and redis.call('GET', KEYS[3])
if said and said ~= '' then
  local a = {}
  local at = 1
  for i = 1, 7 do
    local from, to, digits = string.find(said, '^(%d+):', at)
    a[i] = from and number(digits)
    if not a[i] then
      return -3
    end
    at = to + 1
  end
  a[8] = string.sub(said, at)
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
if there and not (id and #id >= 1 and #id <= 64 and touches and count and kept and kept <= count and since) then
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
redis.call('HSET', KEYS[1], 'id', id, 'touches', text(touches), 'count', text(count), 'kept', text(kept), 'since',
  text(since))
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

local a = {there and 0 or 1, touches, count, length, math.max(kept - length, 0), since, now + ARGV[2], id}
if #KEYS == 3 then
  local parts = {}
  for i = 1, 7 do
    parts[i] = text(a[i])
  end
  redis.call('SET', KEYS[3], table.concat(parts, ':') .. ':' .. id, 'PX', ARGV[6])
end
return a
