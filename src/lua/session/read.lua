-- Reads a context and its last events.
-- KEYS[1]: the context, as in session/touch.lua. KEYS[2]: the list of its last events. ARGV[1]:
--   maximum number of events. ARGV[2]: maximum of their bytes, each with ARGV[3] bytes more.
-- Reply: {exists, count, kept, lost, since, left, id, event...}: 0 without a context, then all that
--   follow are 0 and '', without events. count: all events. kept: events in the list. lost: events
--   that are missing there. since: start by this server's clock. left: ttl without a touch, in
--   milliseconds. The oldest event comes first. -1: KEYS[1] is no context; -2: KEYS[2] is no list.
-- Run twice: the same.
--@include number
if redis.call('HLEN', KEYS[1]) == 0 then
  return {0, 0, 0, 0, 0, 0, ''}
end
local kind = redis.call('TYPE', KEYS[2])['ok']
if kind ~= 'list' and kind ~= 'none' then
  return -2
end
local r = redis.call('HMGET', KEYS[1], 'id', 'touches', 'count', 'kept', 'since')
local id, count, kept, since = r[1], number(r[3]), number(r[4]), number(r[5])
local valid = id and #id >= 1 and #id <= 64 and number(r[2]) and count and kept and since
if not (valid and kept <= count) then
  return -1
end
local length = redis.call('LLEN', KEYS[2])
local left = math.max(redis.call('PTTL', KEYS[1]), -1)
local reply = {1, count, length, math.max(kept - length, 0), since, left, id}
local wanted, bytes, each = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local events, last, full = {}, length - 1, false
while #events < wanted and last >= 0 and not full do -- in portions: events may be large
  local first = math.max(last - math.min(wanted - #events, 64) + 1, 0)
  local some = redis.call('LRANGE', KEYS[2], first, last)
  for i = #some, 1, -1 do
    bytes = bytes - #some[i] - each
    full = bytes < 0
    if full then
      break
    end
    events[#events + 1] = some[i]
  end
  last = first - 1
end
for i = #events, 1, -1 do
  reply[#reply + 1] = events[i]
end
return reply
