-- Removes the locks that are ours, and notifies the waiters of those that have the contention flag.
-- KEYS: the locks. ARGV[1]: our token. ARGV[2]: the publish command, or ''. ARGV[3]: '': no
--   tickets.
-- Reply: 0: not all were ours; n > 0: all were, and n - 1 connections got the message of one lock,
--   at most. In both cases none is ours any more.
-- Run twice: the second run replies 0 and removes nothing.
local ours, receivers = {}, 0
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' and not string.match(holder.err, '^WRONGTYPE') then
    return holder
  end
  if holder == ARGV[1] then -- a key of another type is not ours
    ours[#ours + 1] = i
  end
end
for _, i in ipairs(ours) do
  local removed = redis.pcall('DEL', KEYS[i], KEYS[i] .. '::contended')
  if type(removed) ~= 'number' then -- as in lock/release
    redis.call('DEL', KEYS[i])
  end
  local n = ARGV[2] ~= '' and removed ~= 1 and redis.pcall(ARGV[2], KEYS[i] .. '::wake', '')
  if type(n) == 'number' and n > receivers then
    receivers = n
  end
end
if #ours < #KEYS then
  return 0
end
return 1 + receivers
