-- Counts the bits that are set in any of several bitmaps: a segment in the live slices.
-- KEYS[1]: a key for their union, which is removed at the end. KEYS[2] and so on: the segment in
--   each slice.
-- Reply: the number of bits; -1: KEYS[1] exists.
-- Run twice: counts twice.
--
-- Counting and removing are tried first, so that no union is left behind.
local there = {}
for i = 2, #KEYS do
  if redis.call('STRLEN', KEYS[i]) > 0 then
    there[#there + 1] = KEYS[i]
  end
end
if #there == 0 then
  return 0
end
if #there == 1 then
  return redis.call('BITCOUNT', there[1])
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return -1
end
redis.call('BITCOUNT', KEYS[1])
redis.call('UNLINK', KEYS[1])
redis.call('BITOP', 'OR', KEYS[1], unpack(there))
local count = redis.call('BITCOUNT', KEYS[1])
redis.call('UNLINK', KEYS[1])
return count
