-- Adds many items to a segment of a Bloom filter at once.
-- KEYS[1]: the segment. KEYS[2]: a temporary key. ARGV[1]: the segment's header, 8 bytes. ARGV[2]:
--   the bits to set, after 8 zero bytes in place of the header. ARGV[3]: the end of the segment, in
--   milliseconds by the server's clock; 0: no end.
-- Reply: the segment before the change; at most its first 8 bytes if they are not the header: then
--   nothing is done.
-- Run twice: the second run finds all bits set.
--
-- BITOP makes a new string without a ttl, which then gets the ttl of the old one.
local head = redis.call('GETRANGE', KEYS[1], 0, 7)
if head ~= ARGV[1] then
  return head
end
redis.call('GETRANGE', KEYS[2], 0, 0) -- an error if it has another type
local old = redis.call('GETRANGE', KEYS[1], 0, #ARGV[2] - 1)
if ARGV[3] ~= '0' then
  -- No effect; finds missing rights before the first change.
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', 60000)
redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
if ARGV[3] ~= '0' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
redis.call('UNLINK', KEYS[2])
return old
