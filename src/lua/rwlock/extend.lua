-- Extends a hold that is ours to at least a ttl from now, as a reader or as the writer; never
-- shortens it. A writer can become a reader. A reader can become the writer if there is no other
-- reader.
-- KEYS[1] to KEYS[5]: the lock (see rwlock/read). ARGV[1]: our token. ARGV[2]: the ttl in ms.
--   ARGV[3]: the ttl for setting a missing hold again, in ms; 0: do not set it. ARGV[4]: the wanted
--   mode, 'r' or 'w'. ARGV[5]: the publish command for waiting readers, or ''.
-- Reply: 1: extended, in the wanted mode; 0: not ours; 2: it was missing and is set again, in the
--   wanted mode; 3: extended, but as a reader, because there is another reader.
-- Run twice: the same, counted from the second run; 1 after a 2.
--@include stored
local writer = redis.call('GET', KEYS[1])
local hold = redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0'
local readers = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '0'
local waiting = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or '0'
redis.call('ZCARD', KEYS[4])
local turns = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2] or '0'
if not (whole(readers) and whole(waiting) and whole(turns)) then
  return foreign('a hold, or a place in the queue')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local today = string.format('%.0f', now)
local reader = tonumber(hold) > now
local others = redis.call('ZCOUNT', KEYS[2], '(' .. today, '+inf') - (reader and 1 or 0)

local function be_reader(expiry)
  local till = string.format('%.0f', math.max(tonumber(readers), expiry))
  -- First: a script that has written continues when the server's memory is full.
  redis.call('PEXPIREAT', KEYS[2], till)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', today)
  redis.call('ZADD', KEYS[2], string.format('%.0f', expiry), ARGV[1])
  redis.call('PEXPIREAT', KEYS[2], till)
end

-- Waiting readers have their turn after us. Commands that may be refused come first: they have no
-- effect on a missing key.
local function be_writer(ttl)
  redis.call('SET', KEYS[1], ARGV[1], 'PX', string.format('%.0f', ttl), 'XX')
  redis.call('PEXPIREAT', KEYS[5], turns)
  if waiting ~= '0' then
    redis.call('ZUNIONSTORE', KEYS[5], 2, KEYS[3], KEYS[5], 'AGGREGATE', 'MAX')
    local till = math.max(tonumber(waiting), tonumber(turns))
    redis.call('PEXPIREAT', KEYS[5], string.format('%.0f', till))
    redis.call('DEL', KEYS[3])
  end
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', string.format('%.0f', ttl))
end

local ttl = tonumber(ARGV[2])
if writer == ARGV[1] then
  local left = math.max(redis.call('PTTL', KEYS[1]), ttl)
  if ARGV[4] == 'w' then -- always a write: see lock/extend
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left))
    return 1
  end
  be_reader(now + left) -- first: the lock is held at any time
  redis.call('DEL', KEYS[1])
  if ARGV[5] ~= '' then
    redis.pcall(ARGV[5], KEYS[1] .. '::wake', '')
  end
  return 1
end

local free = not writer and (ARGV[4] == 'r' or others == 0)
if not reader then
  if ARGV[3] == '0' or not free then
    return 0
  end
  if ARGV[4] == 'w' then
    be_writer(tonumber(ARGV[3]))
  else
    be_reader(now + tonumber(ARGV[3]))
  end
  return 2
end
local expiry = math.max(tonumber(hold), now + ttl)
if ARGV[4] == 'w' and free then
  be_writer(expiry - now)
  return 1
end
be_reader(expiry)
return ARGV[4] == 'r' and 1 or 3
