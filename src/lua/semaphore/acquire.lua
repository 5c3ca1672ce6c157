-- Acquires some of a semaphore's permits if enough are free and there is no waiter before this one.
-- Otherwise a waiter gets a place in the queue, or keeps its place.
-- KEYS[1]: the holders, a zset: token, expiry (TIME in ms). KEYS[2]: the permits, a hash: for each
--   token its number; used, their sum; limit, if it was set. KEYS[3]: the queue, a zset: ticket,
--   number. KEYS[4]: the places, a zset: ticket, expiry (TIME in ms). ARGV[1]: our token. ARGV[2]:
--   the ttl in ms. ARGV[3]: number of permits. ARGV[4]: the limit, if none is set. ARGV[5]: our
--   ticket; '': do not queue. ARGV[6]: time for which the ticket keeps its place, in ms. ARGV[7]:
--   the publish command, or ''. ARGV[8]: '1': ARGV[4] replaces a limit that is set; otherwise '0'.
-- Reply: 0: acquired now; -1: acquired before (the ttl stays as it is); n > 0: not free for us; n
--   is the time until enough permits have expired if we are the first waiter, else the time until
--   the first waiter loses its place, in ms; -3: the queue is full; -4: more permits than the
--   limit, and we have left the queue.
-- Run twice: the second run finds the token and replies -1; or finds the ticket, which keeps its
--   number.
--
-- Dead tickets are removed when they are the first; some of the others when the queue is full. A
-- waiter that leaves some permits free wakes the next one.
--@include stored
local mine = redis.call('ZSCORE', KEYS[3], ARGV[5])
local alive = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local wanted = tonumber(ARGV[3])

local queue, places = KEYS[3], KEYS[4]
--@include queue

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

-- If only the zset was lost, there is no holder. If only the hash was lost, the numbers of the
-- holders are unknown until they extend or expire.
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
  keep(ARGV[5], ARGV[6]) -- first, as in fair/acquire
end

local first, left, removed = first_in_queue()
if not first and alive then
  redis.call('DEL', KEYS[4])
end

-- Permits are free for other waiters.
local function wake(ticket)
  if ARGV[7] ~= '' then
    redis.pcall(ARGV[7], KEYS[1] .. '::wake', ticket)
  end
end

-- Returns the number of the keys that exist.
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
  redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[1]) -- changes nothing; refused if the memory is full
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
  local refused = join(ARGV[5], ARGV[6], last)
  if refused then
    return refused
  end
end
if not is_first then
  return left
end

-- Permits expire one after another. Only the first 64 holders are considered.
local next_out = redis.call('ZRANGE', KEYS[1], 0, 63, 'WITHSCORES')
for i = 1, #next_out, 2 do
  used = used - (whole(redis.call('HGET', KEYS[2], next_out[i])) or 0)
  left = (whole(next_out[i + 1]) or now) - now
  if unknown or used + wanted <= limit then
    break
  end
end
return math.max(left or 1, 1)
