-- Extends a lock that is ours to at least a ttl from now; never shortens it. A lock that lost its
-- ttl gets a ttl again. A missing lock can be set again.
-- KEYS[1]: the lock. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: the ttl for setting a
--   missing lock again, in ms; 0: do not set it.
-- Reply: 1: extended; 0: not ours; 2: it was missing and is set again.
-- Run twice: the same, counted from the second run; 1 after a 2.
local holder = redis.call('GET', KEYS[1])
if not holder and ARGV[3] ~= '0' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  return 2
end
if holder ~= ARGV[1] then
  return 0
end
-- Always a write: since Redis 7.2 a WAIT waits only for writes of its own connection. A longer ttl
-- may have been written on an earlier connection, and not be copied to replicas.
local left = redis.call('PTTL', KEYS[1])
if left < tonumber(ARGV[2]) then
  left = ARGV[2]
end
redis.call('PEXPIRE', KEYS[1], left)
return 1
