-- Clears bits in a segment of one or several bitmaps: the slices that count.
-- KEYS: the segment in each of them. ARGV: the numbers of the bits.
-- Reply: 1.
-- Run twice: the same.
--
-- No key is made or becomes longer: a bit behind a segment's end is clear. The types of all keys
-- are checked first.
local bits = {}
for k = 1, #KEYS do
  bits[k] = 8 * redis.call('STRLEN', KEYS[k])
end
for k = 1, #KEYS do
  for i = 1, #ARGV, 1000 do
    local words = {}
    for j = i, math.min(i + 999, #ARGV) do
      local n = #words
      if tonumber(ARGV[j]) < bits[k] then
        words[n + 1], words[n + 2], words[n + 3], words[n + 4] = 'SET', 'u1', ARGV[j], '0'
      end
    end
    if #words > 0 then
      redis.call('BITFIELD', KEYS[k], unpack(words))
    end
  end
end
return 1
