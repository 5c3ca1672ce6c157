-- Removes a key of a Bloom filter, and others with it.
-- KEYS[1]: its configuration, or a segment. KEYS[2] and so on: what goes with the configuration. ARGV[1]: what KEYS[1] must
--   begin with, else all of it is somebody else's; empty: anything.
-- Reply: 1 they were removed; 0 there was nothing, or somebody else's.
-- Run twice: the second run finds nothing.
--
-- What begins with 8 zero bytes is nobody's: a BITFIELD left it behind where there was no segment.
local head = redis.call('GETRANGE', KEYS[1], 0, math.max(7, #ARGV[1] - 1))
if string.sub(head, 1, #ARGV[1]) ~= ARGV[1] and string.sub(head, 1, 8) ~= string.rep('\0', 8) then
  return 0
end
for i = 2, #KEYS do
  redis.call('GETRANGE', KEYS[i], 0, 0) -- of another type this is an error
end
return redis.call('UNLINK', unpack(KEYS)) > 0 and 1 or 0
