-- Removes a hold that is ours. The lock is free when its owner has no hold left.
-- KEYS[1]: the lock, with the owner. KEYS[2]: the holds (see reentrant/acquire). ARGV[1]: our
--   token. ARGV[2]: the publish command, or ''. ARGV[3]: not used.
-- Reply: n > 0: it was ours and is removed, and n - 1 connections got the message that the lock is
--   free; 0: it was not ours.
-- Run twice: the second run replies 0 and changes nothing.
--@include stored
local holder = redis.call('GET', KEYS[1])
local fields = redis.call('HGETALL', KEYS[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local owner
local ours, last, over = 0, 0, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if field == 'owner' then
    owner = value
  elseif field ~= 'number' then
    local expiry = whole(string.match(value, '^(%d+) '))
    if not expiry then
      return foreign('a hold')
    end
    if field == ARGV[1] or expiry <= now then
      over[#over + 1] = field
    else
      last = math.max(last, expiry)
    end
    if field == ARGV[1] and expiry > now then
      ours = 1
    end
  end
end
if not holder or owner ~= holder then
  return 0
end
if last > 0 then -- the owner has another hold
  for i = 1, #over do
    redis.call('HDEL', KEYS[2], over[i])
  end
  last = string.format('%.0f', last)
  redis.call('PEXPIREAT', KEYS[1], last)
  redis.call('PEXPIREAT', KEYS[2], last)
  return ours
end
redis.call('DEL', KEYS[1], KEYS[2])
if ARGV[2] ~= '' then
  local receivers = redis.pcall(ARGV[2], KEYS[1] .. '::wake', '')
  if ours == 1 and type(receivers) == 'number' then
    return 1 + receivers
  end
end
return ours
