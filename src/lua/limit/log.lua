-- An exact sliding window: each token is an entry whose score is the time at which it was admitted.
--
-- KEYS[1]  the sorted set; KEYS[2] until when the key is banned, and for how long at most
-- ARGV[1]  take, slice, peek, penalty, refund, ban
-- ARGV[2]  four doubles: 6, the period P in microseconds, 0, the most tokens in it, B
-- ARGV[3]  the cost in tokens, 1 to B, of a penalty more, of a peek 0; of ban 0. A slice is a take of as many as there are: at most the cost
-- ARGV[4]  take, penalty, refund: the id of what is taken or was; slice: a double, the fewest that are of use, and an
--          id; ban: a double, for how many microseconds
-- ARGV[5]  tests only: the time, instead of the server's
--
-- Reply: seven doubles: -1 denied, and nothing is changed, else 0, or of refund the tokens that were given back, of slice
-- those that were taken; now; 0; ban, until when (0 or past: none); tokens in the last P; microseconds until as many would
-- be admitted as were asked for (slice, denied: the fewest; else one more); and until all is over.
--
-- A penalty leaves at most 2 * B entries. A clock that stepped back: what lies in the future happened now, as it seems;
-- this is written, with a denial too.
--
-- Twice: the same, as long as the id is; a take may then be denied because of itself.

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

-- Members in pieces that fit on the stack, with a score before each of them or not
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

-- When enough of the oldest are over; when the newest is
local function over(rank)
  local entry = call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  return entry[2] and math.max(math.min(math.ceil(tonumber(entry[2])), now) + P - now, 0) or 0
end
local retry, size = 0, call('ZCARD', KEYS[1])
if count + cost > B and count > 0 then
  retry = over(size - count + math.min(count + cost - B, count) - 1)
end
return pack('<ddddddd', answer, now, 0, ban, count, retry, count > 0 and over(size - 1) or 0)
