-- Merges HyperLogLogs into one.
-- KEYS[1]: that one; what it has counted stays counted. KEYS[2] and so on: the others. ARGV[1]: for how long it is kept if
--   it is new, in milliseconds; 0: for ever. ARGV[2]: 1: the time begins anew, also if it is there.
-- Reply: what it estimates; -1, -2, ...: that key holds something else.
-- Run twice: the same.
--
-- What might be refused comes first: to take memory, to set the ttl.
for i = 1, #KEYS do
  local n = redis.pcall('PFCOUNT', KEYS[i])
  if type(n) ~= 'number' then
    return string.find(n.err, 'WRONGTYPE', 1, true) and -i or n
  end
end
local there = redis.call('EXISTS', KEYS[1]) == 1
if ARGV[1] ~= '0' and (ARGV[2] == '1' or not there) then
  redis.call('SET', KEYS[1], '', there and 'NX' or 'XX') -- nothing
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
redis.call('PFMERGE', KEYS[1], unpack(KEYS, 2))
if ARGV[1] ~= '0' and (ARGV[2] == '1' or not there) then -- last: it may delete the key
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return redis.call('PFCOUNT', KEYS[1])
