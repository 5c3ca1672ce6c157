-- Acquires the lock for a writer, unless there is another hold, or it is the turn of readers that
-- waited for the last writer. Readers that wait at the grant have their turn after this writer.
-- KEYS: see rwlock/read. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: our ticket; '': do
--   not wait. ARGV[4]: time for which the ticket keeps its place, in ms. ARGV[5]: the ttl of the
--   counter.
-- Reply: 0: acquired now; -1: acquired before (the ttl stays as it is); if it is counted, instead
--   of both: a string, the fencing number. n > 0: blocked for n more ms; -2: by a writer without a
--   ttl.
-- Run twice: the second run finds the token and replies the same number; or renews the place of the
--   ticket.
--@include stored
--@include next_number
local writer = redis.call('GET', KEYS[1])
local readers = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '0'
local waiting = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or '0'
local writers = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or '0'
local turns = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2] or '0'
if not (whole(readers) and whole(waiting) and whole(writers) and whole(turns)) then
  return foreign('a hold, or a place in the queue')
end
local counter = KEYS[6] and redis.call('HMGET', KEYS[6], 'number', 'token')
if counter and (counter[1] or counter[2]) and not whole(counter[1], 1) then
  return foreign('the fencing number')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ours = writer == ARGV[1]
local today = string.format('%.0f', now)

-- Adds our ticket to the waiting writers, and removes expired tickets. Commands that may be refused
-- come first: they have no effect on a missing key.
local function wait(expiry, ticket)
  local text = string.format('%.0f', expiry)
  local till = string.format('%.0f', math.max(tonumber(writers), expiry))
  redis.call('ZADD', KEYS[4], 'XX', text, ticket)
  redis.call('PEXPIREAT', KEYS[4], till)
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', today)
  redis.call('ZADD', KEYS[4], text, ticket)
  redis.call('PEXPIREAT', KEYS[4], till)
end

local left = math.max(tonumber(readers), tonumber(turns)) - now
if writer and not ours then
  local ttl = redis.call('PTTL', KEYS[1])
  left = ttl < 0 and -2 or math.max(left, ttl, 1)
end
if not ours and (writer or left > 0) then
  if ARGV[3] ~= '' then
    wait(now + tonumber(ARGV[4]), ARGV[3])
  end
  return left
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
if not ours then
  -- no effect on a missing key; refused if the memory is full
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX')
end
if counted then
  redis.call('PEXPIRE', KEYS[6], ARGV[5])
  redis.call('HSET', KEYS[6], 'number', number, 'token', ARGV[1])
  redis.call('PEXPIRE', KEYS[6], ARGV[5])
end
if not ours then
  redis.call('ZREM', KEYS[4], ARGV[3])
  if waiting ~= '0' then -- all places in KEYS[5] have expired
    redis.call('RENAME', KEYS[3], KEYS[5])
    redis.call('PEXPIREAT', KEYS[5], waiting)
  end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return number or (ours and -1 or 0)
