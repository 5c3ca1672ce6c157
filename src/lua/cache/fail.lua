-- Ends a load that has failed, if its generation is still registered: no invalidation and no other
-- load came after its begin.
-- KEYS[1]: the record. KEYS[2]: the registered generation.
-- ARGV[1]: the generation of the load.
-- ARGV[2]: an ERROR record; '': store none.
-- ARGV[3]: ttl of the ERROR record in milliseconds.
-- ARGV[4]: for a stored VALUE: the time until which no load is tried, 8 bytes for its header. '':
--   the stored value is not usable, and the ERROR record replaces it.
-- ARGV[5]: command that wakes waiters: 'PUBLISH' or 'SPUBLISH'; '': none.
-- Reply: 1 if ended; 0 if another generation or none is registered.
-- Run twice: the second run finds another generation or none, and does nothing.
--
-- Commands that a server can refuse come before any change: without the permission to write or
-- delete, or without memory, nothing is done.
local head = redis.call('GETRANGE', KEYS[1], 0, 71)
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
if ARGV[4] ~= '' and #head == 72 and string.sub(head, 1, 5) == '\190ly\1\1' then -- a value
  redis.call('SETRANGE', KEYS[1], 16, '') -- changes nothing; the server may refuse it
  redis.call('DEL', KEYS[2])
  redis.call('SETRANGE', KEYS[1], 16, ARGV[4])
elseif ARGV[2] ~= '' then
  redis.call('SET', KEYS[2], ARGV[1], 'KEEPTTL') -- changes nothing either
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
else
  redis.call('DEL', KEYS[2])
end
if ARGV[5] ~= '' then
  redis.pcall(ARGV[5], KEYS[1] .. '::filled', '')
end
return 1
