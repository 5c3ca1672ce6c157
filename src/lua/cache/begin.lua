-- Begins a load, or a put: from now on only this one may store what it brings.
-- KEYS[1]: the record (an envelope, see src/cache/record.h). KEYS[2]: its generation: who may store one.
-- ARGV[1]: the id of what was seen there, bytes 48 to 63, or as many as there are; '': nothing; 'whatever is there' (which
--   is longer than an id): it is of no account. ARGV[2]: our generation, 16 random bytes. ARGV[3]: for how long it is
--   good, in milliseconds.
-- Reply: 1 begun; else what is there, which is something else than was seen, and nothing was done.
-- Run twice: it would let us store what we loaded before an invalidation that came between the two. So it is never sent
--   twice with the same generation.
local there = redis.call('GETRANGE', KEYS[1], 48, 63)
redis.call('GET', KEYS[2]) -- what is there is going to be replaced, but not if it is of another type
if there ~= ARGV[1] and ARGV[1] ~= 'whatever is there' then
  return redis.call('GET', KEYS[1]) or ''
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
