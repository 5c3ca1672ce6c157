-- Extends a leader's lease to at least a ttl from now, and the memory of its term; never shortens
-- the lease.
-- KEYS[1]: the lease, with the leader's token. KEYS[2]: the term. ARGV[1]: our token. ARGV[2]: the
--   ttl in ms. ARGV[3]: '0': a missing lease is not set again. ARGV[4]: the ttl of the term in ms.
-- Reply: 1: extended; 0: not ours.
-- Run twice: the same, counted from the second run.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('HMGET', KEYS[2], 'number') -- an error if the key has another type
local left = redis.call('PTTL', KEYS[1])
if left < tonumber(ARGV[2]) then
  left = ARGV[2]
end
redis.call('PEXPIRE', KEYS[1], left)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
