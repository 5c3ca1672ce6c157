-- How many different items were counted by any of several HyperLogLogs.
-- KEYS: all of them.
-- Reply: the estimate; -1, -2, ...: that key holds something else.
-- Run twice: the same; it changes nothing, if not what a server remembers of an estimate.
for i = 1, #KEYS do
  local n = redis.pcall('PFCOUNT', KEYS[i])
  if type(n) ~= 'number' then
    return string.find(n.err, 'WRONGTYPE', 1, true) and -i or n
  end
end
return redis.call('PFCOUNT', unpack(KEYS))
