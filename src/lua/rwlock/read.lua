-- Acquires a read hold, unless a writer has the lock, or a writer waits and it is not the reader's
-- turn. The turn comes when a writer has had the lock since the reader began to wait: so readers
-- and writers take turns.
-- KEYS[1]: the writer's token. The next keys are zsets: member, expiry (TIME in ms). KEYS[2]:
--   tokens of readers. KEYS[3] to KEYS[5], tickets of waiters: readers behind a waiting writer;
--   writers; readers whose turn is before any writer's. KEYS[6], if the grants are counted: the
--   counter, a hash: number, token.
-- ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: our ticket; '': do not wait. ARGV[4]: time
--   for which the ticket keeps its place, in ms. ARGV[5]: token of the reader before us in the
--   client's queue, or '': while it holds the lock, it is our turn too. ARGV[6]: the ttl of the
--   counter in ms.
-- Reply: 0: acquired now; -1: acquired before (the ttl stays as it is); if it is counted, instead
--   of both: a string, the fencing number. n > 0: blocked for n more ms; -2: by a writer without a
--   ttl.
-- Run twice: the second run finds the token; or renews the place of the ticket. The number is the
--   same, or larger if there was another grant in between.
--@include stored
--@include next_number
local writer = redis.call('GET', KEYS[1])
local last = {}
for i = 2, 4 do
  last[i] = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or '0'
end
last[5] = writer and redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2] or '0'
local hold = redis.call('ZSCORE', KEYS[2], ARGV[1])
local writers = last[4]
local turn = redis.call('ZSCORE', KEYS[5], ARGV[3]) or '0'
local before = redis.call('ZSCORE', KEYS[2], ARGV[5]) or '0'
turn = math.max(tonumber(turn), tonumber(before))
if not (whole(last[2]) and whole(last[3]) and whole(last[4]) and whole(last[5])) then
  return foreign('a hold, or a place in the queue')
end
local counter = KEYS[6] and redis.call('HMGET', KEYS[6], 'number', 'token')
if counter and (counter[1] or counter[2]) and not whole(counter[1], 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local today = string.format('%.0f', now)
local ours = hold and tonumber(hold) > now

-- Adds a member to one of the sets, and removes expired members. Commands that may be refused come
-- first: they have no effect on a missing key.
local function put(i, expiry, member)
  local text = string.format('%.0f', expiry)
  local till = string.format('%.0f', math.max(tonumber(last[i]), expiry))
  redis.call('ZADD', KEYS[i], 'XX', text, member)
  redis.call('PEXPIREAT', KEYS[i], till)
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', today)
  redis.call('ZADD', KEYS[i], text, member)
  redis.call('PEXPIREAT', KEYS[i], till)
end

if not ours and (writer or (tonumber(writers) > now and turn <= now)) then
  local place = now + tonumber(ARGV[4])
  if ARGV[3] ~= '' and writer then -- our turn is after this writer
    put(5, place, ARGV[3])
    redis.call('ZREM', KEYS[3], ARGV[3])
  elseif ARGV[3] ~= '' then
    put(3, place, ARGV[3])
  end
  if not writer then
    return tonumber(writers) - now
  end
  local left = redis.call('PTTL', KEYS[1])
  return left < 0 and -2 or math.max(left, 1)
end

local number, counted
if counter and ours and counter[2] == ARGV[1] then
  number = counter[1]
elseif counter then
  number = next_number(counter[1], time)
  if not number then
    return used_up()
  end
  counted = true
end
if counted then
  redis.call('ZADD', KEYS[2], 'XX', 0, '') -- changes nothing; refused if the memory is full
  redis.call('PEXPIRE', KEYS[6], ARGV[6])
  redis.call('HSET', KEYS[6], 'number', number, 'token', ARGV[1])
  redis.call('PEXPIRE', KEYS[6], ARGV[6])
end
if not ours then
  put(2, now + tonumber(ARGV[2]), ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[3])
  redis.call('ZREM', KEYS[5], ARGV[3])
end
return number or (ours and -1 or 0)
