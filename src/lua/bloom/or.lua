-- Adds many items to a segment of a Bloom filter at once.
-- KEYS[1]: the segment. KEYS[2]: what is used meanwhile, and gone afterwards. ARGV[1]: the segment's header, 8 bytes.
--   ARGV[2]: the bits to set, as the segment has them, with 8 zero bytes in the header's place. ARGV[3]: when it ends,
--   in milliseconds by the server's clock; 0: never.
-- Reply: the segment as it was; the first 8 bytes of it, or less, if they are not the header: then nothing is done.
-- Run twice: the second run finds all bits set.
--
-- BITOP makes a new string, which has no ttl: it gets that of the old one.
local head = redis.call('GETRANGE', KEYS[1], 0, 7)
if head ~= ARGV[1] then
  return head
end
redis.call('GETRANGE', KEYS[2], 0, 0) -- of another type this is an error
local old = redis.call('GETRANGE', KEYS[1], 0, #ARGV[2] - 1) -- who had another filter's options may have made it longer
if ARGV[3] ~= '0' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3]) -- it changes nothing; who may not do that shall not have changed anything
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', 60000)
redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
if ARGV[3] ~= '0' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
redis.call('UNLINK', KEYS[2])
return old
