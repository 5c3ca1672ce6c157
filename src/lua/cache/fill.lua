-- Stores the record of a load or a put, if its generation is still registered: no invalidation and
-- no other load came after its begin.
-- KEYS[1]: the record. KEYS[2]: the registered generation.
-- ARGV[1]: the generation of the load, which is the id of the record.
-- ARGV[2]: the record; '': store none and delete the present one.
-- ARGV[3]: ttl of the record in milliseconds.
-- ARGV[4]: command that wakes waiters: 'PUBLISH' or 'SPUBLISH'; '': none.
-- Reply: 1 if stored; 0 if not.
-- Run twice: the second run stores nothing. It replies 1 if it finds the record, and 0 if the
--   record was replaced or invalidated since, or if ARGV[2] is ''.
--
-- Commands that a server can refuse come before any change: without the permission to write or
-- delete, or without memory, nothing is done.
local there = redis.call('GETRANGE', KEYS[1], 48, 63)
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return there == ARGV[1] and 1 or 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[2], KEYS[1])
else
  redis.call('SET', KEYS[2], ARGV[1], 'KEEPTTL') -- changes nothing; the server may refuse it
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
if ARGV[4] ~= '' then
  redis.pcall(ARGV[4], KEYS[1] .. '::filled', '')
end
return 1
