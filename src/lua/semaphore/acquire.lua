-- Takes some of a semaphore's permits if so many are free and nobody has come before; otherwise a waiter gets a place
-- in the queue, or keeps the one that it has; and says when to ask again.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. KEYS[3]: the queue, a zset of tickets by their numbers. KEYS[4]: until
--   when each ticket keeps its place, a zset of tickets by TIME in ms. ARGV[1]: our token. ARGV[2]: the ttl in
--   milliseconds. ARGV[3]: how many permits. ARGV[4]: the limit, where none was set. ARGV[5]: our ticket; '': one that
--   does not queue. ARGV[6]: for how long the ticket keeps its place, in milliseconds. ARGV[7]: how to publish: 'PUBLISH',
--   'SPUBLISH', ''. ARGV[8]: '1': the limit is ARGV[4], whatever was set; otherwise '0'.
-- Reply: 0 taken now; -1 ours already (their ttl is left alone); n > 0 not to be had now; the time until so many have
--   run out, if we are the first in line, or until the first in line loses its place, in milliseconds; -3 the queue is
--   full; -4 more than the limit, and we are not in the queue any more.
-- Run twice: the second run finds the token, and replies -1; or finds the ticket, which keeps its number.
--
-- A ticket's number is one more than the largest in the queue: so the order is that of arrival here, and no clock's.
-- Dead tickets are taken out when they come to be the first; some of the others when the queue is full. Who is given
-- permits and leaves some wakes the next in line.
--@include stored
local mine = redis.call('ZSCORE', KEYS[3], ARGV[5])
local alive = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local wanted = tonumber(ARGV[3])

local function leave(ticket)
  redis.call('ZREM', KEYS[3], ticket)
  redis.call('ZREM', KEYS[4], ticket)
end

-- The queue's keys live for as long as anybody keeps a place in it.
local function prolong()
  for i = 3, 4 do
    if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[6]) then
      redis.call('PEXPIRE', KEYS[i], ARGV[6])
    end
  end
end

-- Keeps our place, under that number if it is a new one.
local function keep(number)
  prolong() -- also before: who may not do that shall not leave anything for ever
  if number then
    redis.call('ZADD', KEYS[3], string.format('%.0f', number), ARGV[5])
  end
  redis.call('ZADD', KEYS[4], string.format('%.0f', now + ARGV[6]), ARGV[5])
  prolong()
end

local set = redis.call('HMGET', KEYS[2], 'used', 'limit')
local used, limit = whole(set[1] or '0'), tonumber(ARGV[4])
if not used or set[2] and not whole(set[2]) then
  return foreign('the permits')
end
if ARGV[8] == '0' and set[2] then
  limit = whole(set[2])
end
local contended = alive or used + wanted > limit
local last
if contended and ARGV[5] ~= '' and not mine then
  last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
end
local longest = contended and redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if alive and not whole(alive) or last and not whole(last, -9007199254740991) or
    longest and not whole(longest) then
  return foreign('a place in the queue, or the end of a permit')
end
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1000)
for _, token in ipairs(over) do
  local has = redis.call('HGET', KEYS[2], token)
  used = used - (has and whole(has) or has and math.huge or 0)
end
if used < 0 and #over > 0 then
  return foreign('the permits')
end
for _, token in ipairs(over) do
  redis.call('ZREM', KEYS[1], token)
  redis.call('HDEL', KEYS[2], token)
end
if #over > 0 and set[1] then
  redis.call('HSET', KEYS[2], 'used', used)
end

-- Where one of the two keys has gone without the other: if it is the zset nobody has any; if it is the hash it is not known
-- how many somebody has, until that one extends, or has run out.
local holders = redis.call('ZCARD', KEYS[1])
local unknown = holders > 0 and holders + 1 + (set[2] and 1 or 0) > redis.call('HLEN', KEYS[2])
if holders == 0 and used > 0 then
  redis.call('PEXPIRE', KEYS[2], 604800000)
  redis.call('DEL', KEYS[2])
  if set[2] then
    redis.call('HSET', KEYS[2], 'limit', set[2])
    redis.call('PEXPIRE', KEYS[2], 604800000)
  end
  used = 0
end

if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return -1
end
if mine then
  keep() -- before the dead are looked for: who comes back before anybody has noticed has its place
end

local first, left, removed
for i = 1, 129 do
  first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  left = first and tonumber(redis.call('ZSCORE', KEYS[4], first) or now) - now
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
  redis.call('DEL', KEYS[4])
end

-- Others may have what is free.
local function wake(whom)
  if ARGV[7] ~= '' then
    redis.pcall(ARGV[7], KEYS[1] .. '::wake', whom)
  end
end

-- How many of the keys there are.
local function remember()
  return redis.call('PEXPIRE', KEYS[1], 604800000) -- seven days; the longest permit lasts one
    + redis.call('PEXPIRE', KEYS[2], 604800000)
end

local function tidy()
  if used == 0 and not set[2] then
    redis.call('DEL', KEYS[2])
  end
end

if wanted > limit then
  tidy()
  if mine then
    leave(ARGV[5])
  end
  if removed or (mine and first == ARGV[5]) then
    wake(redis.call('ZRANGE', KEYS[3], 0, 0)[1] or '')
  end
  return -4
end

local is_first = not first or first == ARGV[5]
if is_first and not unknown and used + wanted <= limit then
  redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[1]) -- it changes nothing; where the memory is full it is refused
  local known = remember()
  used = used + wanted
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3], 'used', used)
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
  if known < 2 then
    remember()
  end
  if first then
    leave(first)
    if used < limit then
      wake(redis.call('ZRANGE', KEYS[3], 0, 0)[1] or '')
    end
  end
  return 0
end

tidy()
if not is_first and removed and used < limit then
  wake(first)
end
if ARGV[5] ~= '' and not mine then
  if redis.call('ZCARD', KEYS[3]) >= 100000 then
    for _, ticket in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 128)) do
      leave(ticket)
    end
    if redis.call('ZCARD', KEYS[3]) >= 100000 then
      return -3
    end
  end
  last = last or redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or '0'
  if not whole(last, -9007199254740991) then
    return foreign('a place in the queue')
  end
  redis.call('ZADD', KEYS[3], 'XX', 0, ARGV[5]) -- as above
  keep(tonumber(last) + 1)
end
if not is_first then
  return left
end

-- Permits run out one after the other. Where there are very many it is said when the first of them have.
local next_out = redis.call('ZRANGE', KEYS[1], 0, 63, 'WITHSCORES')
for i = 1, #next_out, 2 do
  used = used - (whole(redis.call('HGET', KEYS[2], next_out[i])) or 0)
  left = (whole(next_out[i + 1]) or now) - now
  if unknown or used + wanted <= limit then
    break
  end
end
return math.max(left or 1, 1)
