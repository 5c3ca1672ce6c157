-- Counts the bits that are set in any of several bitmaps: a segment in the slices that are live.
-- KEYS[1]: where their union is made, and taken away again before this ends. KEYS from 2 on: the segment in each slice.
-- Reply: how many; -1: there is something where the union would be made.
-- Run twice: counts twice.
--
-- What cannot be counted or taken away again shall not be made: both are tried before.
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
