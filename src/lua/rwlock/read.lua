-- Lets a reader in, unless a writer holds the lock, or one waits for it and it is not the reader's turn. That comes when
-- a writer has held the lock since the reader began to wait: so readers and writers take turns.
-- KEYS[1]: the writer's token. Sorted sets, by when what is in them expires (TIME in ms): KEYS[2]: the readers' tokens;
--   and the tickets of who waits: KEYS[3]: readers behind a writer that waits; KEYS[4]: writers; KEYS[5]: readers
--   whose turn is before any writer's. KEYS[6], if the grants are counted: the counter, a hash: number, token.
-- ARGV[1]: our token. ARGV[2]: the ttl in milliseconds. ARGV[3]: our ticket, or '' if we do not wait. ARGV[4]: for how long
--   its place is kept, in milliseconds. ARGV[5]: the token of a reader that was let in and that we stood behind, or '':
--   while it is in, it is our turn too. ARGV[6]: for how long the counter is remembered, in milliseconds.
-- Reply: 0 let in; -1 in already (the ttl is left alone); if it is counted instead of either: a string, the number.
--   n > 0: somebody is in the way for n more milliseconds; -2: a writer without a ttl is.
-- Run twice: the second run finds the token; or renews the ticket's place. The number is the same, or if somebody was let in
--   between a larger one.
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
local host = redis.call('ZSCORE', KEYS[2], ARGV[5]) or '0'
turn = math.max(tonumber(turn), tonumber(host))
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

-- Puts somebody into one of the sets, and takes out whose time is over. What might be refused comes first: it has no effect
-- on what is not there.
local function put(i, expiry, who)
  local text = string.format('%.0f', expiry)
  local till = string.format('%.0f', math.max(tonumber(last[i]), expiry))
  redis.call('ZADD', KEYS[i], 'XX', text, who)
  redis.call('PEXPIREAT', KEYS[i], till)
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', today)
  redis.call('ZADD', KEYS[i], text, who)
  redis.call('PEXPIREAT', KEYS[i], till)
end

if not ours and (writer or (tonumber(writers) > now and turn <= now)) then
  local place = now + tonumber(ARGV[4])
  if ARGV[3] ~= '' and writer then -- behind this one it is in any case our turn
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
  redis.call('ZADD', KEYS[2], 'XX', 0, '') -- nobody: refused, if ever, before anything is done
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
