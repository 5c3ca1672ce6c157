-- Removes a lock if it is ours. Removes our ticket from the queue, or keeps its place. Wakes the
-- first waiter if the lock is free, and either it was ours or another waiter was the first before.
-- KEYS: see fair/acquire. ARGV[1]: our token; '': none. ARGV[2]: the publish command, or ''.
--   ARGV[3]: our ticket; '': none; 'TICKET+MS': the owner of the ticket still waits and does not
--   know of its grant: if the lock is ours, the ticket is first again and keeps that place for MS
--   ms. All other waiters have arrived later.
-- Reply: 0: it was not ours; n > 0: it was and is removed, and n - 1 connections got the message.
-- Run twice: the second run replies 0 and removes nothing.
--@include stored
local holder = redis.call('GET', KEYS[1])
local alive = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
local was_first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if alive and not whole(alive) or was_first[2] and not whole(was_first[2], -9007199254740991) then
  return foreign('a place in the queue')
end
local rank = redis.call('ZRANK', KEYS[2], ARGV[3])
local kept, place = string.match(ARGV[3], '^(%x+)%+(%d+)$')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local queue, places = KEYS[2], KEYS[3]
--@include queue

local ours = holder == ARGV[1] and ARGV[1] ~= ''
if ours then
  redis.call('DEL', KEYS[1])
end
if rank then
  leave(ARGV[3])
end
if ours and kept then
  keep(kept, place, tonumber(was_first[2] or '1') - 1)
end
local first = first_in_queue()
if not first and alive then
  redis.call('DEL', KEYS[3])
end
local receivers
if ARGV[2] ~= '' and first and (ours or (first ~= was_first[1] and not holder)) then
  receivers = redis.pcall(ARGV[2], KEYS[1] .. '::wake', first)
end
if not ours then
  return 0
end
return 1 + (type(receivers) == 'number' and receivers or 0)
