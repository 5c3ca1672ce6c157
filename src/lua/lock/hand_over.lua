-- Moves a lock from one token to another, with a new ttl. It never creates the key.
-- KEYS[1]: the lock. ARGV[1]: the token of the holder. ARGV[2]: the new token. ARGV[3]: the ttl in
--   ms.
-- Reply: 0: moved now; -1: moved before (the ttl stays as it is); n > 0: the lock is free, or
--   another token has it for n more ms; -2: another token, without a ttl.
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
