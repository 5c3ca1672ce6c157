-- Ends a context.
-- KEYS[1]: the context, as in session/touch.lua. KEYS[2]: the list of its last events. ARGV[1]: the
--   id of the context to end; '': any.
-- Reply: {ended, count, id}: 1, its number of events, and its id; or 0 with those of another
--   context, or 0 and '' if there is none. -1: KEYS[1] is no context.
-- Run twice: the second run finds none, or another one.
if redis.call('HLEN', KEYS[1]) == 0 then
  return {0, 0, ''}
end
local r = redis.call('HMGET', KEYS[1], 'id', 'count')
local count = r[2] and #r[2] <= 15 and string.match(r[2], '^%d+$') and tonumber(r[2])
if not (r[1] and #r[1] >= 1 and #r[1] <= 64 and count) then
  return -1
end
redis.call('LLEN', KEYS[2]) -- an error for another type
if ARGV[1] ~= '' and ARGV[1] ~= r[1] then
  return {0, count, r[1]}
end
redis.call('UNLINK', KEYS[1], KEYS[2])
return {1, count, r[1]}
