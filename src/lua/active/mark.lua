-- Counts users as active in a period: of each, that it has been seen.
-- KEYS[1]: the period's HyperLogLog. ARGV[1]: when it ends, in milliseconds since 1970. ARGV from 2 on: the users.
-- Reply: 1; or 0: the period is so long ago that its key is over already, and nothing is kept.
-- Run twice: the same again.
--
-- The ttl is set where the key is made, and never changed: it ends a certain time after the period, whenever it was
-- made. What may be refused is called before anything is made: the ttl of the missing key is set; and before that it is
-- written to, with nothing, since where memory is short a server refuses only what is the first to write. Users come to
-- PFADD in portions, because too many words (some 8,000) are an error.
local new = redis.call('PTTL', KEYS[1]) == -2
if new then
  redis.call('SETRANGE', KEYS[1], 0, '')
  redis.call('PEXPIREAT', KEYS[1], ARGV[1])
end
for i = 2, #ARGV, 4000 do
  redis.call('PFADD', KEYS[1], unpack(ARGV, i, math.min(i + 3999, #ARGV)))
end
if new then
  redis.call('PEXPIREAT', KEYS[1], ARGV[1])
  return redis.call('EXISTS', KEYS[1])
end
return 1
