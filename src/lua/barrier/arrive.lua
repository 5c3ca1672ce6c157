-- Comes to a barrier, or stays there; opens it when all parties have come.
-- KEYS[1]: the barrier, a hash: count, and generation: how often it has opened. KEYS[2]: who waits, a sorted set:
--   a party, and until when its place is kept. KEYS[3]: who is through, a sorted set: a party, and the generation
--   that it was one of; or minus the time at which it withdrew. KEYS[4]: a sorted set: a generation, and when it
--   opened. Times are TIME in milliseconds.
-- ARGV[1]: how many parties. ARGV[2]: so long after its last use the barrier is forgotten. ARGV[3]: this party.
-- ARGV[4]: its place is kept for so long. ARGV[5]: who is through is remembered for so long, at least. ARGV[6]: how to
--   publish that it has opened; '': do not. ARGV[7]: a party of which nothing is under way any more, and which need not be
--   remembered; '': none.
-- Reply: n > 0: open, for the n-th time, and this party is one of those; 0 it waits; -1 it has withdrawn; -2 the
--   barrier has another count.
-- Run twice: the second run keeps the place for longer, or finds the party among those who are through: it never
--   comes a second time.
--
-- Which generations are old is known to a second, so that KEYS[4] stays small however often it opens. What might be refused
-- is done before anything that must not be done alone: so it opens as a whole, and every key has a ttl.
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

-- Without openings that are remembered, no generation is.
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
