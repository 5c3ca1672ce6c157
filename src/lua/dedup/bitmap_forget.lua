-- Takes numbers out of a bitmap, which does not grow by that.
-- KEYS[1]: the bitmap. ARGV: the numbers.
-- Reply: how many of them were there.
-- Run twice: the second time there is nothing to take out.
local bits = redis.call('STRLEN', KEYS[1]) * 8
local n = 0
for i = 1, #ARGV do
  if tonumber(ARGV[i]) < bits then
    n = n + redis.call('SETBIT', KEYS[1], ARGV[i], 0)
  end
end
return n
