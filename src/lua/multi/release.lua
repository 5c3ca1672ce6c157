-- Removes those locks that are ours, and tells those who wait for them.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: how to publish: 'PUBLISH', 'SPUBLISH', ''. ARGV[3]: '', there are no
--   tickets.
-- Reply: 0 not all were ours; n > 0 all were, and n - 1 connections have heard of it, the largest number for one of them.
--   In both cases none is ours any more.
-- Run twice: the second run replies 0, and removes nothing.
local ours, heard = {}, 0
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' and not string.match(holder.err, '^WRONGTYPE') then
    return holder
  end
  if holder == ARGV[1] then -- one of another type is not ours, and keeps nobody from the rest
    ours[#ours + 1] = i
  end
end
for _, i in ipairs(ours) do
  redis.call('DEL', KEYS[i])
end
for _, i in ipairs(ours) do
  local n = ARGV[2] ~= '' and redis.pcall(ARGV[2], KEYS[i] .. '::wake', '')
  if type(n) == 'number' and n > heard then
    heard = n
  end
end
if #ours < #KEYS then
  return 0
end
return 1 + heard
