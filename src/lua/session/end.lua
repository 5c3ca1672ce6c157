-- Ends a context.
-- KEYS[1]: the context, as session_touch has it. KEYS[2]: the list of its last events. ARGV[1]: the id of the context
--   that is to end; '': whatever is there.
-- Reply: {ended, count, id}: 1, and how many events it had, and its id; or 0, because there is none (0, ''), or
--   another one (how many events that has, and its id). -1 what KEYS[1] holds is no context.
-- Run twice: the second run finds none, or another one.
if redis.call('HLEN', KEYS[1]) == 0 then
  return {0, 0, ''}
end
local r = redis.call('HMGET', KEYS[1], 'id', 'count')
local count = r[2] and #r[2] <= 15 and string.match(r[2], '^%d+$') and tonumber(r[2])
if not (r[1] and #r[1] >= 1 and #r[1] <= 64 and count) then
  return -1
end
redis.call('LLEN', KEYS[2]) -- of another type this is an error
if ARGV[1] ~= '' and ARGV[1] ~= r[1] then
  return {0, count, r[1]}
end
redis.call('UNLINK', KEYS[1], KEYS[2])
return {1, count, r[1]}
