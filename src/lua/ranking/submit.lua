-- Changes scores of a board: sets them, adds to them, or keeps the best. All of them, or none.
-- KEYS[1]: the board, a sorted set. KEYS[2]: if time breaks ties, a hash; the field of a member is
--   its turn, 16 digits, which is the prefix of the member in KEYS[1]; the empty field has ARGV[1]
--   and the last turn.
-- ARGV[1]: "high" or "low": the best score; with KEYS[2] also "-earlier" or "-later": the better
--   member among equal scores. ARGV[2]: "set", "add" or "best". ARGV[3]: ttl from now on, in
--   milliseconds; 0: no end. ARGV[4]: maximum number of members, the best ones; 0: any number.
--   ARGV[5] and so on: a member, its number from -(2^53 - 1) to 2^53 - 1, the next member.
-- Reply: {score, rank, changed, ...}, three for each: the new score; the rank, 0 for the best, -1:
--   beyond the maximum; 1 if the score is new or another one, else 0. -1: a key or a part of it is
--   lost; -2: KEYS[2] is no hash of turns; -3: the board has another kind; -4: a stored score is
--   not valid; -5: a sum would not be valid.
-- Run twice: "add" adds twice; with the others the second run changes nothing, and reports that.
--
-- A member gets a new turn only when its score changes, so a repeated score keeps its position.
-- Each run removes at most as many members beyond ARGV[4] as it was given and 1,024 more, because
-- the maximum may have become smaller. The calls that can be refused come before the first change.
local MAX = 9007199254740991 -- 2^53 - 1
local high = string.sub(ARGV[1], 1, 4) == 'high'
-- Later turns sort behind earlier ones.
local up = ARGV[1] == 'high-later' or ARGV[1] == 'low-earlier'

local function whole(text)
  local n = tonumber(text)
  return n and n == math.floor(n) and n >= -MAX and n <= MAX and n
end

local card = redis.call('ZCARD', KEYS[1])
local turn = 0
if KEYS[2] then
  local fields = redis.call('HLEN', KEYS[2])
  local kind, last = string.match(redis.call('HGET', KEYS[2], '') or '', '^([%l-]+) (%d+)$')
  if fields > 0 and not whole(last) then
    return -2
  end
  if kind and kind ~= ARGV[1] then
    return -3
  end
  if card ~= math.max(fields - 1, 0) then
    return -1
  end
  turn = tonumber(last or 0)
end

local score, code, changed = {}, {}, {}
for i = 5, #ARGV, 2 do
  local member, given = ARGV[i], tonumber(ARGV[i + 1])
  if score[member] == nil then
    code[member] = ''
    if KEYS[2] then
      code[member] = redis.call('HGET', KEYS[2], member)
    end
    local stored = code[member] and redis.call('ZSCORE', KEYS[1], code[member] .. member)
    if KEYS[2] and code[member] and not stored then
      return -1
    end
    score[member] = stored and whole(stored)
    if stored and not score[member] then
      return -4
    end
  end
  local had = score[member]
  if ARGV[2] == 'add' then
    given = (had or 0) + given
  elseif ARGV[2] == 'best' and had and (high and had > given or not high and had < given) then
    given = had
  end
  if given > MAX or given < -MAX or turn + #changed >= MAX then
    return -5
  end
  changed[#changed + 1] = given ~= had and 1 or 0
  score[member] = given
end

local most, ttl = tonumber(ARGV[4]), tonumber(ARGV[3])
local time = redis.call('TIME')
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ttl)
-- The calls from here to the ttls change no score.
redis.call('ZADD', KEYS[1], 'XX', 'INCR', 0, ARGV[5])
if KEYS[2] then
  redis.call('ZREM', KEYS[1], '')
  redis.call('HDEL', KEYS[2], string.rep(' ', 1025))
end
redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], '')
if most > 0 then
  redis.call('ZRANGE', KEYS[1], 1, 0)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0)
end
for i = 1, #KEYS do
  if ttl > 0 then
    redis.call('PEXPIREAT', KEYS[i], ends)
  else
    redis.call('PERSIST', KEYS[i])
  end
end

for i = 1, #changed do
  local member = ARGV[3 + 2 * i]
  if changed[i] == 1 then
    if KEYS[2] then
      turn = turn + 1
      local old = code[member]
      code[member] = string.format('%016.0f', up and turn or MAX - turn)
      local last = ARGV[1] .. ' ' .. string.format('%.0f', turn)
      redis.call('HSET', KEYS[2], member, code[member], '', last)
      redis.call('ZADD', KEYS[1], string.format('%.0f', score[member]), code[member] .. member)
      if old then
        redis.call('ZREM', KEYS[1], old .. member)
      end
    else
      redis.call('ZADD', KEYS[1], string.format('%.0f', score[member]), code[member] .. member)
    end
  end
end
local over = math.min(redis.call('ZCARD', KEYS[1]) - most, #changed + 1024)
if most > 0 and over > 0 then
  local first, last = high and 0 or -over, high and over - 1 or -1
  if KEYS[2] then
    for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], first, last)) do
      redis.call('HDEL', KEYS[2], string.sub(entry, 17))
    end
  end
  redis.call('ZREMRANGEBYRANK', KEYS[1], first, last)
end
if ttl > 0 then -- last: it deletes the keys if the time is over
  for i = 1, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], ends)
  end
end

local reply = {}
for i = 1, #changed do
  local member = ARGV[3 + 2 * i]
  reply[3 * i - 2] = score[member]
  local rank = redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], code[member] .. member)
  reply[3 * i - 1] = rank or -1
  reply[3 * i] = changed[i]
end
return reply
