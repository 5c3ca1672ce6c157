-- Estimates the number of different items of several HyperLogLogs.
-- KEYS: the HyperLogLogs.
-- Reply: the estimate; -1, -2, ...: that key has another type.
-- Run twice: the same; it changes at most the cached estimate of a server.
for i = 1, #KEYS do
  local n = redis.pcall('PFCOUNT', KEYS[i])
  if type(n) ~= 'number' then
    return string.find(n.err, 'WRONGTYPE', 1, true) and -i or n
  end
end
return redis.call('PFCOUNT', unpack(KEYS))
