-- Begins a load or a put: registers its generation. Only the owner of the registered generation may
-- store a record.
-- KEYS[1]: the record (stored form: src/cache/record.h). KEYS[2]: the registered generation.
-- ARGV[1]: the id of the record that the caller has seen: bytes 48 to 63, or fewer if the value is
--   shorter. '': no record. 'whatever is there' (longer than any id): begin regardless of the
--   record.
-- ARGV[2]: the new generation, 16 random bytes.
-- ARGV[3]: lifetime of the generation in milliseconds.
-- Reply: 1 if begun. Otherwise the stored value, which is not the one that the caller has seen;
--   nothing was done.
-- Run twice: the second run could follow an invalidation, and would then permit a value from before
--   the invalidation. So the script is never sent twice with the same generation.
local there = redis.call('GETRANGE', KEYS[1], 48, 63)
redis.call('GET', KEYS[2]) -- fails if the key, which SET would replace, has another type
if there ~= ARGV[1] and ARGV[1] ~= 'whatever is there' then
  return redis.call('GET', KEYS[1]) or ''
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
