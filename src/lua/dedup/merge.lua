-- Merges HyperLogLogs into one.
-- KEYS[1]: the target, which keeps its own items. KEYS[2] and so on: the others. ARGV[1]: ttl of a
--   new target in milliseconds; 0: none. ARGV[2]: 1: the ttl also starts again for an existing
--   target.
-- Reply: the estimate for the target; -1, -2, ...: that key has another type.
-- Run twice: the same.
--
-- The calls that can be refused come first: an empty write, and the ttl.
for i = 1, #KEYS do
  local n = redis.pcall('PFCOUNT', KEYS[i])
  if type(n) ~= 'number' then
    return string.find(n.err, 'WRONGTYPE', 1, true) and -i or n
  end
end
local there = redis.call('EXISTS', KEYS[1]) == 1
if ARGV[1] ~= '0' and (ARGV[2] == '1' or not there) then
  redis.call('SET', KEYS[1], '', there and 'NX' or 'XX') -- an empty write
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
redis.call('PFMERGE', KEYS[1], unpack(KEYS, 2))
if ARGV[1] ~= '0' and (ARGV[2] == '1' or not there) then -- last: it may delete the key
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return redis.call('PFCOUNT', KEYS[1])
