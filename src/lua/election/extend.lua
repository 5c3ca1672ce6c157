-- Makes a leader's lease live for at least a ttl from now, and its term be remembered; never shortens the lease.
-- KEYS[1]: the lease, the leader's token. KEYS[2]: the term. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds.
-- ARGV[3]: '0': a lease that is gone is not taken again. ARGV[4]: for how long the term is remembered, in milliseconds.
-- Reply: 1 it is ours and lives that long; 0 it is not ours.
-- Run twice: the same again, counted from the second run.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('HMGET', KEYS[2], 'number') -- the term; of another type this is an error
local left = redis.call('PTTL', KEYS[1])
if left < tonumber(ARGV[2]) then
  left = ARGV[2]
end
redis.call('PEXPIRE', KEYS[1], left)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
