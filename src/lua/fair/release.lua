-- Gives a lock back if it is ours; takes our ticket out of the queue if it is there, or keeps our place; and wakes who is
-- the first in line then, if it is free and the lock was ours, or another was the first before. Where nobody is in line the
-- release is published for everybody: a holder may listen for who takes the lock from it.
-- KEYS[1]: the lock. KEYS[2]: the queue, a zset of tickets by their numbers. KEYS[3]: until when each ticket keeps its
--   place, a zset of tickets by TIME in ms. ARGV[1]: our token; '': none. ARGV[2]: how to publish: 'PUBLISH', 'SPUBLISH', ''.
--   ARGV[3]: our ticket; '': none; 'TICKET+MS': its owner goes on waiting, who does not know that it was granted: if
--   the lock is ours the ticket comes before all others again, who have all come later, and keeps that place for so
--   many milliseconds.
-- Reply: 0 it was not ours; n > 0 it was and is removed, and n - 1 connections have heard of it.
-- Run twice: the second run replies 0, and removes nothing.
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

local function leave(ticket)
  redis.call('ZREM', KEYS[2], ticket)
  redis.call('ZREM', KEYS[3], ticket)
end

-- The queue's keys live for as long as anybody keeps a place in it.
local function prolong()
  for i = 2, 3 do
    if redis.call('PTTL', KEYS[i]) < tonumber(place) then
      redis.call('PEXPIRE', KEYS[i], place)
    end
  end
end

local gave = holder == ARGV[1] and ARGV[1] ~= ''
if gave then
  redis.call('DEL', KEYS[1])
end
if rank then
  leave(ARGV[3])
end
if gave and kept then
  prolong() -- also before: who may not do that shall not leave anything for ever
  redis.call('ZADD', KEYS[2], string.format('%.0f', tonumber(was_first[2] or '1') - 1), kept)
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + place), kept)
  prolong()
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
for _ = 1, 128 do -- enough for one call
  if not first or tonumber(redis.call('ZSCORE', KEYS[3], first) or now) > now then
    break
  end
  leave(first)
  first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end
if not first and alive then
  redis.call('DEL', KEYS[3])
end
local heard
if ARGV[2] ~= '' and (gave or (first and first ~= was_first[1] and not holder)) then
  heard = redis.pcall(ARGV[2], KEYS[1] .. '::wake', first or '')
end
if not gave then
  return 0
end
return 1 + (type(heard) == 'number' and heard or 0)
