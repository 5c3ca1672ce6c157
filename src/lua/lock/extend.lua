-- Makes a lock that is ours live for at least a ttl from now; never shortens it, and gives one
-- that has lost its ttl a ttl again. One that is gone can be set again.
-- KEYS[1]: the lock. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds.
-- ARGV[3]: the ttl to set it again with, in milliseconds, if it is gone; 0: do not.
-- Reply: 1 it is ours and lives that long; 0 it is not ours; 2 it was gone and is set again.
-- Run twice: the same again, counted from the second run; 1 after a 2.
local holder = redis.call('GET', KEYS[1])
if not holder and ARGV[3] ~= '0' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  return 2
end
if holder ~= ARGV[1] then
  return 0
end
-- Written in any case: since Redis 7.2 a WAIT waits only for what its own connection has written, and what makes it live
-- longer already may have been written on one before, and not be copied.
local left = redis.call('PTTL', KEYS[1])
if left < tonumber(ARGV[2]) then
  left = ARGV[2]
end
redis.call('PEXPIRE', KEYS[1], left)
return 1
