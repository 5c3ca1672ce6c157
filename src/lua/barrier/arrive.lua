-- Registers a party at a barrier, or keeps its place. Opens the barrier when all parties are there.
-- KEYS[1]: the barrier, a hash: count; generation: the number of openings. KEYS[2]: waiting
--   parties, a zset: party, expiry of its place. KEYS[3]: finished parties, a zset: party, and the
--   generation in which it passed, or minus the time at which it withdrew. KEYS[4]: a zset:
--   generation, time of its opening. Times are TIME in ms.
-- ARGV[1]: the count. ARGV[2]: the ttl after the last use, in ms. ARGV[3]: our party. ARGV[4]: time
--   for which the place is kept, in ms. ARGV[5]: shortest time for which finished parties are
--   remembered, in ms. ARGV[6]: the publish command for the opening, or ''. ARGV[7]: a party
--   without calls in flight, which need not be remembered; '': none.
-- Reply: n > 0: passed, in generation n; 0: waiting; -1: withdrawn; -2: the barrier has another
--   count.
-- Run twice: the second run keeps the place for longer, or finds the party among the finished ones:
--   a party never arrives a second time.
--
-- The times of generations are stored to a second, so that KEYS[4] stays small however often the
-- barrier opens. Commands that may be refused come before those that must not be done alone: the
-- barrier opens as a whole, and every key has a ttl.
--@include stored
local function text(n)
  return string.format('%.0f', n)
end

local state = redis.call('HMGET', KEYS[1], 'count', 'generation')
local newest = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
local place = redis.call('ZSCORE', KEYS[2], ARGV[3]) or '0'
local past = whole(redis.call('ZSCORE', KEYS[3], ARGV[3]) or '0', -9007199254740991)
local generation = whole(state[2] or '0')
if not past or not generation or not whole(place) or newest and not whole(newest) then
  return foreign('the state of the barrier')
end
if past ~= 0 then
  return past > 0 and past or -1
end
if state[1] and state[1] ~= ARGV[1] then
  return -2
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local keep = math.max(tonumber(ARGV[2]), tonumber(ARGV[4]))
local today = text(now)
local others = redis.call('ZCARD', KEYS[2]) - #redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', today)
others = others - (tonumber(place) > now and 1 or 0)
local opens = others + 1 >= tonumber(ARGV[1])
local old = text(now - ARGV[5] - 1000)
local gone = opens and redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', old)
if opens and gone[1] and not whole(gone[#gone]) then
  return foreign('a generation of the barrier')
end

local function renew(i)
  redis.call('PEXPIRE', KEYS[i], text(math.max(redis.call('PTTL', KEYS[i]), keep)))
end

-- Forgets old finished parties. Without a stored opening it forgets all generations.
local function forget()
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', old)
  if redis.call('ZCARD', KEYS[4]) == 0 then
    gone = {'+inf'}
  end
  if #gone > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[3], '1', gone[#gone])
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-' .. old, '-1')
end

local function open(parties)
  redis.call('DEL', KEYS[2])
  generation = generation + 1
  redis.call('HSET', KEYS[1], 'generation', text(generation))
  renew(1)
  for _, party in ipairs(parties) do
    redis.call('ZADD', KEYS[3], text(generation), party)
  end
  if not newest or math.abs(now - newest) >= 1000 or redis.call('ZCARD', KEYS[4]) == 0 then
    redis.call('ZADD', KEYS[4], text(now), text(generation))
  end
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
  redis.call('PEXPIRE', KEYS[4], ARGV[5])
end

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', today)
redis.call('ZREM', KEYS[3], ARGV[7])
if opens then
  forget()
end
renew(2)
redis.call('HSET', KEYS[1], 'count', ARGV[1], 'generation', text(generation))
renew(1)
redis.call('ZADD', KEYS[2], text(now + ARGV[4]), ARGV[3])
renew(2)
if opens then
  open(redis.call('ZRANGE', KEYS[2], 0, -1))
  if ARGV[6] ~= '' then
    redis.pcall(ARGV[6], KEYS[1] .. '::wake', '')
  end
end
return opens and generation or 0
