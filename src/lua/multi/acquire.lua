-- Acquires all locks if all are free, else none.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: the ttl of the contention
--   flags (see lock/acquire).
-- Reply: 0: all acquired now; -1: acquired before (the ttls stay as they are); n > 0: other
--   holders, the longest for n more ms; -2: another holder, without a ttl. A key of another type is
--   an error that names it: 'WRONGTYPE ', the key, and the text of the server.
-- Run twice: the second run finds the token and replies -1. A lock that is gone meanwhile is set
--   again.
--@include contend
local missing, busy, left = {}, {}, 0
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then -- an error, which does not name the key
    local text = string.match(holder.err, '^WRONGTYPE (.*)$')
    return text and redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ': ' .. text) or holder
  end
  if not holder then
    missing[#missing + 1] = i
  elseif holder ~= ARGV[1] then
    local rest = redis.call('PTTL', KEYS[i])
    busy[#busy + 1] = KEYS[i]
    if rest < 0 then
      left = -2
    elseif left >= 0 then
      left = math.max(left, rest, 1)
    end
  end
end
if #busy > 0 then
  for _, key in ipairs(busy) do
    contend(key, ARGV[3])
  end
  return left
end
if #missing == 0 then
  return -1
end
for _, i in ipairs(missing) do
  redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
end
return 0
