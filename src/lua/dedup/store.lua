-- Stores a combination of two sets, and replaces the old value.
-- KEYS[1]: the target, which may be one of the two. KEYS[2], KEYS[3]: the sets. ARGV[1]: 'u' union,
--   'i' intersection, 'd' difference. ARGV[2]: ttl in milliseconds; 0: none.
-- Reply: the number of members; with 0 the key does not exist; -1, -2 or -3: that key has another
--   type.
-- Run twice: the same, except for a difference that replaces its second set.
--
-- The calls that can be refused come first: an empty write, and the ttl.
for i = 1, 3 do
  local type = redis.call('TYPE', KEYS[i]).ok
  if type ~= 'set' and type ~= 'none' then
    return -i
  end
end
if ARGV[2] ~= '0' then
  -- An empty write.
  redis.call('SET', KEYS[1], '', redis.call('EXISTS', KEYS[1]) == 1 and 'NX' or 'XX')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local n
if ARGV[1] == 'u' then
  n = redis.call('SUNIONSTORE', KEYS[1], KEYS[2], KEYS[3])
elseif ARGV[1] == 'i' then
  n = redis.call('SINTERSTORE', KEYS[1], KEYS[2], KEYS[3])
else
  n = redis.call('SDIFFSTORE', KEYS[1], KEYS[2], KEYS[3])
end
if ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return n
