-- Removes a hold that is ours, of a reader or the writer, and the place of our ticket.
-- KEYS[1] to KEYS[5]: the lock (see rwlock/read). ARGV[1]: our token. ARGV[2]: the publish command,
--   or ''. ARGV[3]: our ticket, or ''.
-- Reply: n > 0: the hold was ours and is removed, and n - 1 connections got the message that others
--   may acquire the lock; 0: it was not ours.
-- Run twice: the second run replies 0 and changes nothing.
--@include stored
local writer = redis.call('GET', KEYS[1])
local hold = redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0'
redis.call('ZCARD', KEYS[3])
if not whole(hold) then
  return foreign('a hold')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local alive = '(' .. string.format('%.0f', now)
local wrote = writer == ARGV[1]
local read = tonumber(hold) > now
local writers = redis.call('ZCOUNT', KEYS[4], alive, '+inf')
local turns = redis.call('ZCOUNT', KEYS[5], alive, '+inf')

if wrote then
  redis.call('DEL', KEYS[1])
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[3])

local ours = (wrote or read) and 1 or 0
if ARGV[2] == '' or (writer and not wrote) then
  return ours
end
local readers = redis.call('ZCOUNT', KEYS[2], alive, '+inf')
local writers_left = redis.call('ZCOUNT', KEYS[4], alive, '+inf')
local turns_left = redis.call('ZCOUNT', KEYS[5], alive, '+inf')
local readers_may = writers > 0 and writers_left == 0 and
  redis.call('ZCOUNT', KEYS[3], alive, '+inf') > 0
local writers_may = turns > 0 and turns_left == 0 and readers == 0 and writers_left > 0
if wrote or (read and readers == 0) or readers_may or writers_may then
  local receivers = redis.pcall(ARGV[2], KEYS[1] .. '::wake', '')
  if ours == 1 and type(receivers) == 'number' then
    return 1 + receivers
  end
end
return ours
