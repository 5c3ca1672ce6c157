-- Counts users as active in a period.
-- KEYS[1]: the period's HyperLogLog. ARGV[1]: its end, in milliseconds since 1970. ARGV[2] and so
--   on: the users.
-- Reply: 1; or 0: the period ended before, and nothing is kept.
-- Run twice: the same.
--
-- The ttl is set when the key is made, and never changed. The calls that can be refused come first:
-- the ttl of the missing key, and before it an empty write, because a server without memory refuses
-- only the first write of a script. PFADD gets the users in portions, because about 8,000 words are
-- an error.
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
