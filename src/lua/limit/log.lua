-- An exact sliding window: each token is an entry whose score is the time of its admission.
--
-- KEYS[1]  the sorted set
-- KEYS[2]  the end of a ban, and its longest duration
-- ARGV[1]  take, slice, peek, penalty, refund, ban
-- ARGV[2]  four doubles: 6, the period P in microseconds, 0, the limit B in tokens per period
-- ARGV[3]  the cost in tokens: 1 to B; penalty: may be more; peek, ban: 0. A slice takes as many
--          tokens as there are, at most the cost
-- ARGV[4]  take, penalty: an id for the entries. refund: the id of the take. slice: a double, the
--          smallest useful number of tokens, and an id. ban: a double, the duration in microseconds
-- ARGV[5]  tests only: the time, instead of the server's
--
-- Reply: seven doubles:
--   the answer: -1: denied, nothing changed. Otherwise 0; refund: the tokens given back; slice: the
--     tokens taken
--   the present time
--   0
--   the end of the ban; 0 or past: no ban
--   the tokens of the last P microseconds
--   microseconds until the cost would be admitted (slice, denied: the smallest useful number;
--     slice, granted: one more)
--   microseconds until all entries are over
--
-- A penalty leaves at most 2 * B entries. If the clock steps back, entries of the future count as
-- admitted now; this is written, also with a denial.
--
-- Run twice: the same, if the id is the same. A take may then be denied because of its own entries.

--@include stored
local call, pack, read = redis.call, struct.pack, struct.unpack
local MOST = 9007199254740991 -- 2^53 - 1
local op, cost, now = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[5])
if not now then
  now = call('TIME')
  now = now[1] * 1000000 + now[2]
end
local kind, P, R, B = read('<dddd', ARGV[2])

local function text(number)
  return string.format('%.0f', number)
end

local ban, banned, behind = 0, call('GET', KEYS[2]), false
local newest = call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if newest[1] and not whole(newest[2]) then
  return foreign('the time of a token')
end
if banned then
  if #banned ~= 16 then
    return redis.error_reply('WRONGTYPE this key is not a ban')
  end
  local longest
  ban, longest = read('<dd', banned)
  if not (ban % 1 == 0 and ban >= 0 and ban <= MOST and longest % 1 == 0 and longest >= 0 and
      longest <= MOST) then
    return redis.error_reply('WRONGTYPE this key is not a ban')
  end
  if ban > now + longest then
    ban, behind = now + longest, op ~= 'peek'
  end
end

-- Call a command for all members, in pieces that fit on the Lua stack. score: added before each
-- member if it is not nil
local function each(command, names, score)
  local sum = 0
  for first = 1, #names, 1000 do
    local words = {}
    for i = first, math.min(first + 999, #names) do
      if score then
        words[#words + 1] = score
      end
      words[#words + 1] = names[i]
    end
    sum = sum + call(command, KEYS[1], unpack(words))
  end
  return sum
end

if behind then
  call('SET', KEYS[2], pack('<dd', ban, ban - now), 'PX', text(math.ceil((ban - now) / 1000)))
end
if newest[1] and tonumber(newest[2]) > now and op ~= 'peek' then
  each('ZADD', call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf'), text(now))
end

local count, id = call('ZCOUNT', KEYS[1], '(' .. text(now - P), '+inf'), ARGV[4]
local answer, added = 0, 0
if op == 'take' or op == 'peek' then
  answer = now >= ban and count + cost <= B and 0 or -1
  added = answer == 0 and op == 'take' and cost or 0
elseif op == 'slice' then
  local fewest = read('<d', id)
  id, cost = string.sub(id, 9), math.min(cost, B - count)
  if now >= ban and cost >= fewest then
    answer, added, cost = cost, cost, 1
  else
    answer, cost = -1, fewest
  end
elseif op == 'penalty' then
  added = math.max(math.min(cost, 2 * B - count), 0)
elseif op == 'ban' then
  local length = read('<d', ARGV[4])
  ban = now + length
  if length > 0 then
    call('SET', KEYS[2], pack('<dd', ban, length), 'PX', text(math.ceil(length / 1000)))
  else
    call('DEL', KEYS[2])
  end
end

if added > 0 or op == 'refund' then
  local names = {}
  for i = 1, op == 'refund' and cost or added do
    names[i] = id .. ':' .. i
  end
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - P))
  if op == 'refund' then
    answer = each('ZREM', names)
    count = count - answer
  else
    each('ZADD', names, text(now))
    call('PEXPIRE', KEYS[1], text(math.ceil(P / 1000)))
    count = count + added
  end
end

-- The time until the entry of this rank is over
local function over(rank)
  local entry = call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  return entry[2] and math.max(math.min(math.ceil(tonumber(entry[2])), now) + P - now, 0) or 0
end
local retry, size = 0, call('ZCARD', KEYS[1])
if count + cost > B and count > 0 then
  retry = over(size - count + math.min(count + cost - B, count) - 1)
end
return pack('<ddddddd', answer, now, 0, ban, count, retry, count > 0 and over(size - 1) or 0)
