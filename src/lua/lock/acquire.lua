-- Takes a lock if it is free, and says how long its holder may still hold it if it is not.
-- KEYS[1]: the lock. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds.
-- Reply: 0 taken now; -1 ours already (its ttl is left alone); n > 0 another's for n more milliseconds;
--        -2 another's, without a ttl.
-- Run twice: the second run finds the token and replies -1.
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 0
end
if holder == ARGV[1] then
  return -1
end
local left = redis.call('PTTL', KEYS[1])
return left < 0 and -2 or math.max(left, 1)
