-- Makes a set of two others, in place of what was there.
-- KEYS[1]: where; it may be one of the two. KEYS[2], KEYS[3]: the two. ARGV[1]: 'u' their union, 'i' the intersection, 'd'
--   the difference. ARGV[2]: for how long it is kept, in milliseconds; 0: for ever.
-- Reply: how many members it has, and if it is none, it is not there; -1, -2 or -3: that key holds something else.
-- Run twice: the same, but for a difference in place of its second set.
--
-- What might be refused comes first: to take memory, to set the ttl.
for i = 1, 3 do
  local type = redis.call('TYPE', KEYS[i]).ok
  if type ~= 'set' and type ~= 'none' then
    return -i
  end
end
if ARGV[2] ~= '0' then
  redis.call('SET', KEYS[1], '', redis.call('EXISTS', KEYS[1]) == 1 and 'NX' or 'XX') -- nothing
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local n
if ARGV[1] == 'u' then
  n = redis.call('SUNIONSTORE', KEYS[1], KEYS[2], KEYS[3])
elseif ARGV[1] == 'i' then
  n = redis.call('SINTERSTORE', KEYS[1], KEYS[2], KEYS[3])
else
  n = redis.call('SDIFFSTORE', KEYS[1], KEYS[2], KEYS[3])
end
if ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return n
