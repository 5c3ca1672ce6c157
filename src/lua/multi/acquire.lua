-- Takes all locks if all are free, and says how long they may still be held if they are not.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds.
-- Reply: 0 taken now, all of them; -1 ours already (their ttl is left alone); n > 0 others' for n more
--   milliseconds, the longest of them; -2 another's, without a ttl.
-- A key of another type is an error that names it: 'WRONGTYPE ', the key, and what the server says.
-- Run twice: the second run finds the token and replies -1. One that has gone meanwhile is taken again.
local missing, busy, left = {}, false, 0
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then -- an error; of which key it is, it does not say itself
    local words = string.match(holder.err, '^WRONGTYPE (.*)$')
    return words and redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ': ' .. words) or holder
  end
  if not holder then
    missing[#missing + 1] = i
  elseif holder ~= ARGV[1] then
    local rest = redis.call('PTTL', KEYS[i])
    busy = true
    if rest < 0 then
      left = -2
    elseif left >= 0 then
      left = math.max(left, rest, 1)
    end
  end
end
if busy then
  return left
end
if #missing == 0 then
  return -1
end
for _, i in ipairs(missing) do
  redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
end
return 0
