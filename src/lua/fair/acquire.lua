-- Acquires a lock if it is free and there is no waiter before this one. Otherwise a waiter gets a
-- place in the queue, or keeps its place.
-- KEYS[1]: the lock, with the holder's token. KEYS[2]: the queue, a zset: ticket, number. KEYS[3]:
--   the places, a zset: ticket, expiry (TIME in ms). KEYS[4], if grants are counted: the counter, a
--   hash: number, token. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: our ticket; '': do
--   not queue. ARGV[4]: time for which the ticket keeps its place, in ms. ARGV[5]: the publish
--   command, or ''. ARGV[6], with KEYS[4]: the ttl of the counter in ms.
-- Reply: 0: acquired now; -1: acquired before (the ttl stays as it is); with KEYS[4] instead of
--   both: a string, the fencing number. n > 0: not free for us; n is the holder's rest in ms if we
--   are the first waiter, else the time until the first waiter loses its place; -2: another holder,
--   without a ttl, and we are the first waiter; -3: the queue is full.
-- Run twice: the second run finds the token, and replies -1 or the same number; or finds the
--   ticket, which keeps its number.
--
-- Dead tickets are removed when they are the first; some of the others when the queue is full.
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
local queue, places = KEYS[2], KEYS[3]
--@include queue

local function count()
  if holder and stored[2] == ARGV[1] then
    return stored[1]
  end
  local text = next_number(stored[1], time)
  if not text then
    return nil
  end
  redis.call('PEXPIRE', KEYS[4], ARGV[6]) -- first, as in keep()
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

if holder == ARGV[1] then
  return take()
end
if mine then
  keep(ARGV[3], ARGV[4]) -- first: a waiter that is late but still queued stays
end
local first, left, removed = first_in_queue()
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
  local refused = join(ARGV[3], ARGV[4], last)
  if refused then
    return refused
  end
end
if first and first ~= ARGV[3] then
  return left
end
left = redis.call('PTTL', KEYS[1])
return left < 0 and -2 or math.max(left, 1)
