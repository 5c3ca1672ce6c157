-- Takes a lock if it is free and nobody has come before; otherwise a waiter gets a place in the queue, or keeps
-- the one that it has, and is told when to ask again.
-- KEYS[1]: the lock, its holder's token. KEYS[2]: the queue, a zset of tickets by their numbers. KEYS[3]: until when each
--   ticket keeps its place, a zset of tickets by TIME in ms. KEYS[4], if grants are counted: the counter, a hash: number,
--   token. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds. ARGV[3]: our ticket; '': one that does not queue.
--   ARGV[4]: for how long the ticket keeps its place, in milliseconds. ARGV[5]: how to publish: 'PUBLISH', 'SPUBLISH',
--   ''. ARGV[6], with KEYS[4]: for how long the counter is remembered, in milliseconds.
-- Reply: 0 taken now; -1 ours already (its ttl is left alone); with KEYS[4] in place of both a string: the number.
--   n > 0: not free for us; the time until the first in line may have it, if that is us, or until the first
--   in line loses its place, in milliseconds; -2 another's, without a ttl, and we are the first in line; -3 the queue
--   is full.
-- Run twice: the second run finds the token, and replies -1 or the same number; or finds the ticket, which keeps
--   its number.
--
-- A ticket's number is one more than the largest in the queue: so the order is that of arrival here, and no clock's.
-- Dead tickets are taken out when they come to be the first; some of the others when the queue is full.
--@include stored
--@include next_number
local holder = redis.call('GET', KEYS[1])
local alive = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
local mine = redis.call('ZSCORE', KEYS[2], ARGV[3])
local stored = KEYS[4] and redis.call('HMGET', KEYS[4], 'number', 'token')
local last
if (holder or alive) and ARGV[3] ~= '' and not mine then
  last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
end
if alive and not whole(alive) or last and not whole(last, -9007199254740991) then
  return foreign('a place in the queue')
end
if stored and (stored[1] or stored[2]) and not whole(stored[1], 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function leave(ticket)
  redis.call('ZREM', KEYS[2], ticket)
  redis.call('ZREM', KEYS[3], ticket)
end

local function count()
  if holder and stored[2] == ARGV[1] then
    return stored[1]
  end
  local text = next_number(stored[1], time)
  if not text then
    return nil
  end
  redis.call('PEXPIRE', KEYS[4], ARGV[6]) -- also before, as above
  redis.call('HSET', KEYS[4], 'number', text, 'token', ARGV[1])
  redis.call('PEXPIRE', KEYS[4], ARGV[6])
  return text
end

local function take()
  local number = stored and count()
  if stored and not number then
    return used_up()
  end
  if not holder then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  end
  if mine then
    leave(ARGV[3])
  end
  return number or (holder and -1 or 0)
end

-- The queue's keys live for as long as anybody keeps a place in it.
local function prolong()
  for i = 2, 3 do
    if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then
      redis.call('PEXPIRE', KEYS[i], ARGV[4])
    end
  end
end

-- Keeps our place, under that number if it is a new one.
local function keep(number)
  prolong() -- also before: who may not do that shall not leave anything for ever
  if number then
    redis.call('ZADD', KEYS[2], string.format('%.0f', number), ARGV[3])
  end
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[4]), ARGV[3])
  prolong()
end

if holder == ARGV[1] then
  return take()
end
if mine then
  keep() -- before the dead are looked for: who comes back before anybody has noticed has its place
end

local first, left, removed
for i = 1, 129 do
  first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  left = first and tonumber(redis.call('ZSCORE', KEYS[3], first) or now) - now
  if not first or left > 0 then
    break
  end
  if i == 129 then -- enough for one call
    left = 1
    break
  end
  leave(first)
  removed = true
end
if not first and alive then
  redis.call('DEL', KEYS[3])
end

if not holder and (not first or first == ARGV[3]) then
  return take()
end
if removed and not holder and ARGV[5] ~= '' then
  redis.pcall(ARGV[5], KEYS[1] .. '::wake', first)
end
if ARGV[3] ~= '' and not mine then
  if redis.call('ZCARD', KEYS[2]) >= 100000 then
    for _, ticket in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 128)) do
      leave(ticket)
    end
    if redis.call('ZCARD', KEYS[2]) >= 100000 then
      return -3
    end
  end
  last = last or redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '0'
  if not whole(last, -9007199254740991) then
    return foreign('a place in the queue')
  end
  redis.call('ZADD', KEYS[2], 'XX', 0, ARGV[3]) -- it changes nothing; where the memory is full it is refused
  keep(tonumber(last) + 1)
end
if first and first ~= ARGV[3] then
  return left
end
left = redis.call('PTTL', KEYS[1])
return left < 0 and -2 or math.max(left, 1)
