-- Makes a lock that is ours live for at least a ttl from now; never shortens it, and gives one
-- that has lost its ttl a ttl again.
-- KEYS[1]: the lock. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds.
-- Reply: 1 it is ours and lives that long; 0 it is not ours.
-- Run twice: the same again, counted from the second run.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
