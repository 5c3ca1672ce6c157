-- Sets a field of a string if it is what is expected. A field of more than 32 bits is given in two pieces, each of which
-- Lua's numbers can hold.
-- KEYS[1]: the string. ARGV[1]: for how long it is kept after a change, in milliseconds; 0: as before. ARGV[2] and so on,
--   for each piece: its type and offset, as BITFIELD has them; what is expected; and the new value.
-- Reply: {swapped, piece, ...}: 1 or 0, and what the pieces were before.
-- Run twice: the second run finds the new value, and says 0 unless that is what was expected.
local reply, same = {0}, true
for i = 2, #ARGV, 4 do
  local n = redis.call('BITFIELD', KEYS[1], 'GET', ARGV[i], ARGV[i + 1])[1]
  reply[#reply + 1] = n
  same = same and n == tonumber(ARGV[i + 2])
end
if not same then
  return reply
end
local ttl = tonumber(ARGV[1])
if ttl ~= 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
for i = 2, #ARGV, 4 do
  redis.call('BITFIELD', KEYS[1], 'SET', ARGV[i], ARGV[i + 1], ARGV[i + 3])
end
if ttl ~= 0 then -- last: it deletes the string if the ttl is over
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
reply[1] = 1
return reply
