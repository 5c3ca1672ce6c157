-- Removes a key of a Bloom filter, and other keys with it.
-- KEYS[1]: the configuration, or a segment. KEYS[2] and so on: keys to remove with the
--   configuration. ARGV[1]: the first bytes that KEYS[1] must have; empty: any.
-- Reply: 1 removed; 0 there was nothing, or another value.
-- Run twice: the second run finds nothing.
--
-- A string that begins with 8 zero bytes is removed too: a BITFIELD made it where a segment was
-- missing.
local head = redis.call('GETRANGE', KEYS[1], 0, math.max(7, #ARGV[1] - 1))
if string.sub(head, 1, #ARGV[1]) ~= ARGV[1] and string.sub(head, 1, 8) ~= string.rep('\0', 8) then
  return 0
end
for i = 2, #KEYS do
  redis.call('GETRANGE', KEYS[i], 0, 0) -- an error if it has another type
end
return redis.call('UNLINK', unpack(KEYS)) > 0 and 1 or 0
