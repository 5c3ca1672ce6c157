-- Lets a writer in, unless somebody holds the lock, or it is the turn of readers that have waited for the last writer.
-- Readers that wait when a writer is let in have their turn after it.
-- KEYS[1]: the writer's token. Sorted sets, by when what is in them expires (TIME in ms): KEYS[2]: the readers' tokens;
--   and the tickets of who waits: KEYS[3]: readers behind a writer that waits; KEYS[4]: writers; KEYS[5]: readers
--   whose turn is before any writer's. KEYS[6], if the grants are counted: the counter, a hash: number, token.
-- ARGV[1]: our token. ARGV[2]: the ttl in milliseconds. ARGV[3]: our ticket, or '' if we do not wait. ARGV[4]: for how long
--   its place is kept, in milliseconds. ARGV[5]: for how long the counter is remembered, in milliseconds.
-- Reply: 0 let in; -1 in already (the ttl is left alone); if it is counted instead of either: a string, the number.
--   n > 0: somebody is in the way for n more milliseconds; -2: a writer without a ttl is.
-- Run twice: the second run finds the token, and replies the same number; or renews the ticket's place.
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

-- Puts a ticket among the writers, and takes out those whose time is over. Commands that might be
-- refused come first: they have no effect on a key that is missing.
local function wait(expiry, who)
  local text = string.format('%.0f', expiry)
  local till = string.format('%.0f', math.max(tonumber(writers), expiry))
  redis.call('ZADD', KEYS[4], 'XX', text, who)
  redis.call('PEXPIREAT', KEYS[4], till)
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', today)
  redis.call('ZADD', KEYS[4], text, who)
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
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX') -- it is not there: refused, if ever, before anything is done
end
if counted then
  redis.call('PEXPIRE', KEYS[6], ARGV[5])
  redis.call('HSET', KEYS[6], 'number', number, 'token', ARGV[1])
  redis.call('PEXPIRE', KEYS[6], ARGV[5])
end
if not ours then
  redis.call('ZREM', KEYS[4], ARGV[3])
  if waiting ~= '0' then -- nobody is left in KEYS[5] whose place has not expired
    redis.call('RENAME', KEYS[3], KEYS[5])
    redis.call('PEXPIREAT', KEYS[5], waiting)
  end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return number or (ours and -1 or 0)
