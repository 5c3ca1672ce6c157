-- Extends locks that are all ours to at least a ttl from now; never shortens one. Locks that lost
-- their ttl get a ttl again. If one of them is not ours, the others are released: the lease is
-- over.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: '0': a missing lock is not
--   set again. ARGV[4]: the publish command, or ''.
-- Reply: 1: extended; 0: not all were ours, and none is any more.
-- Run twice: the same, counted from the second run.
local ours = {}
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' and not string.match(holder.err, '^WRONGTYPE') then
    return holder
  end
  if holder == ARGV[1] then -- a key of another type is not ours
    ours[#ours + 1] = i
  end
end
if #ours == #KEYS then
  for i = 1, #KEYS do -- always a write: see lock/extend
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
