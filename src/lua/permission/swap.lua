-- Sets a field of a string if it has the expected value. A field of more than 32 bits comes in two
-- pieces, which are exact as Lua numbers.
-- KEYS[1]: the string. ARGV[1]: ttl after a change, in milliseconds; 0: as before. ARGV[2] and so
--   on, for each piece: type and offset for BITFIELD; the expected value; the new value.
-- Reply: {swapped, piece, ...}: 1 or 0, and the old values of the pieces.
-- Run twice: the second run finds the new value, and replies 0 unless that is the expected value.
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
