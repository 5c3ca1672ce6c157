-- Counts the members of a combination of two sets.
-- KEYS[1], KEYS[2]: the sets. ARGV[1]: 'u' union, 'i' intersection, 'd' difference.
-- Reply: the number of members; -1 or -2: that key has another type.
-- Run twice: the same; it writes nothing.
--
-- The sizes of the sets and of the intersection give all three counts. A server before Redis 7 must
-- build the intersection.
for i = 1, 2 do
  local type = redis.call('TYPE', KEYS[i]).ok
  if type ~= 'set' and type ~= 'none' then
    return -i
  end
end
local a, b = redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[2])
local both = redis.pcall('SINTERCARD', 2, KEYS[1], KEYS[2])
if type(both) ~= 'number' then
  if not string.find(both.err, 'nknown', 1, true) then
    return both
  end
  both = #redis.call('SINTER', KEYS[1], KEYS[2])
end
return ARGV[1] == 'u' and a + b - both or ARGV[1] == 'i' and both or a - both
