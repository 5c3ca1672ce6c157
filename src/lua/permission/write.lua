-- Changes fields of a string, and extends its life.
-- KEYS[1]: the string. ARGV[1]: for how long it is kept after this, in milliseconds. ARGV[2] and so on: what a BITFIELD is
--   given: "GET", type, offset, or "SET", type, offset, value, any number of them. No type is of more than 53 bits.
-- Reply: the numbers that the BITFIELD answers: what a field is, or was.
-- Run twice: the second run says what the first one has left.
--
-- Whoever may not set a ttl changes nothing: it is set before; and again
-- behind, since a ttl that is over by then deletes the string.
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
