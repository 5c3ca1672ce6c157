-- Sets bits in a segment of a bitmap, and how long it lives.
-- KEYS[1]: the segment. ARGV[1]: PEXPIRE: it lives for ARGV[2] milliseconds from now, each time anew; or PEXPIREAT: until
--   ARGV[2], in milliseconds since 1970, from when it is made. ARGV from 3 on: the numbers of the bits.
-- Reply: 1.
-- Run twice: the same again, but that the life counts from the second run.
--
-- What may be refused is called before anything is made: setting bits first, by a BITFIELD that sets none, since where
-- memory is short a server refuses only what is the first to write; and then the ttl, of a key that may be missing. The
-- bits are set in portions, because too many words (some 8,000) are an error.
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
