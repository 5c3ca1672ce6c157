-- How a context stands, and its last events.
-- KEYS[1]: the context, as session_touch has it. KEYS[2]: the list of its last events. ARGV[1]: so many of them are
--   told at most. ARGV[2]: and so many bytes of them, each counted with ARGV[3] bytes more.
-- Reply: {there, count, kept, lost, since, left, id, event...}: 0 there is none, and all that follow are 0, '', and no
--   event; how many events came; how many of them are in the list, and are not though they should be; when it began,
--   by this server's clock; for how long it lives unless it is touched, in milliseconds; its id; the events, the oldest
--   first. -1 what KEYS[1] holds is no context; -2 what KEYS[2] holds is no list.
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
if not (id and #id >= 1 and #id <= 64 and number(r[2]) and count and kept and kept <= count and since) then
  return -1
end
local length = redis.call('LLEN', KEYS[2])
local left = math.max(redis.call('PTTL', KEYS[1]), -1)
local reply = {1, count, length, math.max(kept - length, 0), since, left, id}
local wanted, bytes, each = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local events, last, full = {}, length - 1, false
while #events < wanted and last >= 0 and not full do -- a few at a time: they may be large
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
