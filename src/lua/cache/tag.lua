-- Returns the generation of a tag, and creates it if the tag has none. Deleting the generation
-- invalidates all records that were stored under it.
-- KEYS[1]: the generation of the tag.
-- ARGV[1]: a new generation, 16 random bytes.
-- ARGV[2]: time for which the generation is needed, in milliseconds.
-- Reply: the generation. If the key holds a value that has not 16 bytes: that value, unchanged.
-- Run twice: the second run finds the generation of the first. If the generation was deleted
--   between the two runs, the second run would make the deleted records valid again. So the script
--   is never sent twice with the same bytes.
local generation = redis.call('GET', KEYS[1])
if not generation then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
if #generation == 16 and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return generation
