-- The generation of a tag, which is made if there is none; whoever deletes it invalidates all that were stored under it.
-- KEYS[1]: the tag's. ARGV[1]: 16 random bytes. ARGV[2]: for how long it is needed, in milliseconds.
-- Reply: the generation; or what else is there, if it has not 16 bytes, which is left alone.
-- Run twice: the second run finds it. But if it was deleted between the two, what was stored under it would be good
--   again: so it is never sent twice with the same bytes.
local generation = redis.call('GET', KEYS[1])
if not generation then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
if #generation == 16 and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return generation
