-- Makes locks that are all ours live for at least a ttl from now; never shortens one, and gives those that have lost
-- their ttl a ttl again. If one of them is not ours, those that are are given back: the lease is over.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds. ARGV[3]: '0'; what is gone is not taken again.
--   ARGV[4]: how to publish: 'PUBLISH', 'SPUBLISH', ''.
-- Reply: 1 they are ours and live that long; 0 they were not all ours, and none is any more.
-- Run twice: the same again, counted from the second run.
local ours = {}
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' and not string.match(holder.err, '^WRONGTYPE') then
    return holder
  end
  if holder == ARGV[1] then -- one of another type is not ours
    ours[#ours + 1] = i
  end
end
if #ours == #KEYS then
  for i = 1, #KEYS do -- written in any case: a WAIT waits only for what its own connection has written
    redis.call('PEXPIRE', KEYS[i], math.max(redis.call('PTTL', KEYS[i]), tonumber(ARGV[2])))
  end
  return 1
end
for _, i in ipairs(ours) do
  redis.call('DEL', KEYS[i])
end
for _, i in ipairs(ours) do
  if ARGV[4] ~= '' then
    redis.pcall(ARGV[4], KEYS[i] .. '::wake', '')
  end
end
return 0
