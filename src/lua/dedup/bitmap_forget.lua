-- Removes numbers from a bitmap, which does not grow.
-- KEYS[1]: the bitmap. ARGV: the numbers.
-- Reply: the number of bits that were set.
-- Run twice: the second run finds no bit set.
local bits = redis.call('STRLEN', KEYS[1]) * 8
local n = 0
for i = 1, #ARGV do
  if tonumber(ARGV[i]) < bits then
    n = n + redis.call('SETBIT', KEYS[1], ARGV[i], 0)
  end
end
return n
