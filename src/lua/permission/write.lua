-- Changes fields of a string, and extends its ttl.
-- KEYS[1]: the string. ARGV[1]: ttl from now on, in milliseconds. ARGV[2] and so on: the words of a
--   BITFIELD: "GET", type, offset, or "SET", type, offset, value, any number of them. No type has
--   more than 53 bits.
-- Reply: the numbers of the BITFIELD: present or old values.
-- Run twice: the second run reports the values that the first one left.
--
-- The ttl is set before the first change, so that a user without that right changes nothing. It is
-- set again at the end, because a short ttl may be over by then.
redis.call('BITFIELD', KEYS[1], 'GET', 'u1', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local words, reply = {}, {}
for i = 2, #ARGV do
  words[#words + 1] = ARGV[i]
  local next = ARGV[i + 1]
  if not next or #words > 3000 and (next == 'GET' or next == 'SET') then
    for _, n in ipairs(redis.call('BITFIELD', KEYS[1], unpack(words))) do
      reply[#reply + 1] = n
    end
    words = {}
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return reply
