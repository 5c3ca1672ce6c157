-- Returns permits if they are ours. Removes our ticket from the queue, or keeps its place. Wakes
-- the first waiter (or all waiters without a ticket if the queue is empty), if the permits were
-- ours or another waiter was the first before.
-- KEYS: see semaphore/acquire. ARGV[1]: our token; '': none. ARGV[2]: the publish command, or ''.
--   ARGV[3]: our ticket; '': none; 'TICKET+MS': see fair/release.
-- Reply: 0: they were not ours, or had expired; n > 0: they were and are returned, and n - 1
--   connections got the message.
-- Run twice: the second run replies 0 and returns nothing.
--@include stored
local out = redis.call('ZSCORE', KEYS[1], ARGV[1])
local has = redis.call('HMGET', KEYS[2], ARGV[1], 'limit', 'used')
local was_first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local rank = redis.call('ZRANK', KEYS[3], ARGV[3])
local alive = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
local kept, place = string.match(ARGV[3], '^(%x+)%+(%d+)$')
if not (whole(out or '0') and whole(alive or '0') and
    whole(was_first[2] or '0', -9007199254740991)) then
  return foreign('a place in the queue, or the end of a permit')
end
local left = has[1] and has[3] and whole(has[1]) and whole(has[3]) and has[3] - has[1]
if out and has[1] and has[3] and not (left and left >= 0) then
  return foreign('the permits')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ours = out and tonumber(out) > now
local queue, places = KEYS[3], KEYS[4]
--@include queue

if out then -- in this order: permits count as used until they are known to be returned
  redis.call('ZREM', KEYS[1], ARGV[1])
  if has[1] then
    redis.call('HDEL', KEYS[2], ARGV[1])
    if has[3] then
      redis.call('HSET', KEYS[2], 'used', left)
    end
  end
  if not has[2] and redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('DEL', KEYS[2])
  end
end
if rank then
  leave(ARGV[3])
end
if ours and kept then
  keep(kept, place, tonumber(was_first[2] or '1') - 1)
end
local first = first_in_queue()
if not first and alive then
  redis.call('DEL', KEYS[4])
end
local receivers
if ARGV[2] ~= '' and (out or first ~= was_first[1]) then
  receivers = redis.pcall(ARGV[2], KEYS[1] .. '::wake', first or '')
end
if not ours then
  return 0
end
return 1 + (type(receivers) == 'number' and receivers or 0)
