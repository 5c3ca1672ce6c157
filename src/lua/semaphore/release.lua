-- Gives permits back if they are ours; takes our ticket out of the queue if it is there, or keeps our place; and wakes who
-- is the first in line then, or all who wait without a ticket if nobody is, if the permits were ours or another was the
-- first before.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. KEYS[3]: the queue, a zset of tickets by their numbers. KEYS[4]: until
--   when each ticket keeps its place, a zset of tickets by TIME in ms. ARGV[1]: our token; '': none. ARGV[2]: how to publish:
--   'PUBLISH', 'SPUBLISH', ''. ARGV[3]: our ticket; '': none; 'TICKET+MS': its owner goes on waiting, who does not know that
--   they were granted: if they are ours the ticket comes before all others again, who have all come later, and keeps that
--   place for so many milliseconds.
-- Reply: 0 they were not ours, or had run out; n > 0 they were and are given back, and n - 1 connections have heard of it.
-- Run twice: the second run replies 0, and gives nothing back.
--@include stored
local out = redis.call('ZSCORE', KEYS[1], ARGV[1])
local has = redis.call('HMGET', KEYS[2], ARGV[1], 'limit', 'used')
local was_first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local rank = redis.call('ZRANK', KEYS[3], ARGV[3])
local alive = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
local kept, place = string.match(ARGV[3], '^(%x+)%+(%d+)$')
if not (whole(out or '0') and whole(alive or '0') and whole(was_first[2] or '0', -9007199254740991)) then
  return foreign('a place in the queue, or the end of a permit')
end
local left = has[1] and has[3] and whole(has[1]) and whole(has[3]) and has[3] - has[1]
if out and has[1] and has[3] and not (left and left >= 0) then
  return foreign('the permits')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local ours = out and tonumber(out) > now

local function leave(ticket)
  redis.call('ZREM', KEYS[3], ticket)
  redis.call('ZREM', KEYS[4], ticket)
end

-- The queue's keys live for as long as anybody keeps a place in it.
local function prolong()
  for i = 3, 4 do
    if redis.call('PTTL', KEYS[i]) < tonumber(place) then
      redis.call('PEXPIRE', KEYS[i], place)
    end
  end
end

if out then -- in this order: what is not known to have come back is not given to another
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
  prolong() -- also before: who may not do that shall not leave anything for ever
  redis.call('ZADD', KEYS[3], string.format('%.0f', tonumber(was_first[2] or '1') - 1), kept)
  redis.call('ZADD', KEYS[4], string.format('%.0f', now + place), kept)
  prolong()
end
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
for _ = 1, 128 do -- enough for one call
  if not first or tonumber(redis.call('ZSCORE', KEYS[4], first) or now) > now then
    break
  end
  leave(first)
  first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
end
if not first and alive then
  redis.call('DEL', KEYS[4])
end
local heard
if ARGV[2] ~= '' and (out or first ~= was_first[1]) then
  heard = redis.pcall(ARGV[2], KEYS[1] .. '::wake', first or '')
end
if not ours then
  return 0
end
return 1 + (type(heard) == 'number' and heard or 0)
