-- Removes a lock if it is ours.
-- KEYS[1]: the lock. ARGV[1]: our token.
-- Reply: 1 it was ours and is removed; 0 it was not ours.
-- Run twice: the second run replies 0 and removes nothing.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
