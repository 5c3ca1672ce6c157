-- Passes a lock from one token to another, with a new ttl. It never makes a lock that is not there.
-- KEYS[1]: the lock. ARGV[1]: the token that has it. ARGV[2]: the one that gets it. ARGV[3]: its ttl in milliseconds.
-- Reply: 0 passed now; -1 passed already (its ttl is left alone); n > 0 nobody's, or a third one's for n more
--   milliseconds; -2 a third one's, without a ttl.
-- Run twice: the second run finds the new token and replies -1.
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 1
end
if holder == ARGV[2] then
  return -1
end
if holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return 0
end
local left = redis.call('PTTL', KEYS[1])
return left < 0 and -2 or math.max(left, 1)
