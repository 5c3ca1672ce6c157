-- Acquires a lock if it is free.
-- KEYS[1]: the lock. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: the ttl of the contention
--   flag, which the attempt sets if it finds the lock held, in ms; 0: it sets none.
-- Reply: 0: acquired now; -1: acquired before (the ttl stays as it is); n > 0: another holder, for
--   n more ms; -2: another holder, without a ttl.
-- Run twice: the second run finds the token and replies -1.
--@include contend
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
if holder == ARGV[1] then
  return -1
end
contend(KEYS[1], ARGV[3])
local left = redis.call('PTTL', KEYS[1])
return left < 0 and -2 or math.max(left, 1)
