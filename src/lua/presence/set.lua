-- Sets bits in a segment of a bitmap, and its ttl.
-- KEYS[1]: the segment. ARGV[1]: PEXPIRE: the ttl is ARGV[2] milliseconds, and starts again each
--   time; or PEXPIREAT: a new key lives until ARGV[2], in milliseconds since 1970. ARGV[3] and so
--   on: the numbers of the bits.
-- Reply: 1.
-- Run twice: the same, but a PEXPIRE counts from the second run.
--
-- The calls that can be refused come first: a BITFIELD that sets no bit, because a server without
-- memory refuses only the first write of a script, and the ttl of the key, which may be missing.
-- Bits are set in portions, because about 8,000 words are an error.
redis.call('BITFIELD', KEYS[1], 'GET', 'u1', '0')
local new = redis.call('PTTL', KEYS[1]) == -2
if new or ARGV[1] == 'PEXPIRE' then
  redis.call(ARGV[1], KEYS[1], ARGV[2])
end
for i = 3, #ARGV, 1000 do
  local words = {}
  for j = i, math.min(i + 999, #ARGV) do
    local n = #words
    words[n + 1], words[n + 2], words[n + 3], words[n + 4] = 'SET', 'u1', ARGV[j], '1'
  end
  redis.call('BITFIELD', KEYS[1], unpack(words))
end
if new or ARGV[1] == 'PEXPIRE' then -- last: it deletes the key if the time is over
  redis.call(ARGV[1], KEYS[1], ARGV[2])
end
return 1
