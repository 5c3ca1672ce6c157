-- Reads a board: positions of members, pages, counts.
-- KEYS[1], KEYS[2]: the board, as in ranking/submit.lua. ARGV[1]: its kind, as there. ARGV[2] and
--   so on, one of
--   "find", member, member ...
--   "rank", from, first, n: n entries from position `first` on
--   "score", min, max, from, first, n: the same among the members with these scores
--   "around", member, before, after: the member and its neighbours
--   "count"; or "count", min, max
--   from: "best" or "worst": the end at which positions begin and which comes first.
-- Reply: "find": {rank, score, ...}, two for each; -1 and "0": no such member. "rank", "score",
--   "around": {rank of the first entry, {member, score, ...}}, each member with its turn as prefix.
--   "count": a number. -1: a key or a part of it is lost; -2: KEYS[2] is no hash of turns; -3: the
--   board has another kind; -4: a stored score is not valid.
-- Run twice: the same; it writes nothing.
--@include stored
local high = string.sub(ARGV[1], 1, 4) == 'high'
local card = redis.call('ZCARD', KEYS[1])
if KEYS[2] then
  local fields = redis.call('HLEN', KEYS[2])
  local kind = string.match(redis.call('HGET', KEYS[2], '') or '', '^([%l-]+) %d+$')
  if fields > 0 and not kind then
    return -2
  end
  if kind and kind ~= ARGV[1] then
    return -3
  end
  if card ~= math.max(fields - 1, 0) then
    return -1
  end
end

local function entry_of(member) -- false: no such member
  if not KEYS[2] then
    return member
  end
  local code = redis.call('HGET', KEYS[2], member)
  return code and code .. member
end

local function rank_of(entry)
  return redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], entry)
end

-- Returns n entries from position `first` on, counted from the best or the worst end.
local function range(best, first, n)
  local last = first + n - 1
  return redis.call(best == high and 'ZREVRANGE' or 'ZRANGE', KEYS[1], first, last, 'WITHSCORES')
end

-- Returns the reply for members and scores; -4 if a score is not valid.
local function page_of(first, list)
  for i = 2, #list, 2 do
    if not whole(list[i], -9007199254740991) then
      return -4
    end
  end
  return {first, list}
end

local what = ARGV[2]
if what == 'find' then
  local reply = {}
  for i = 3, #ARGV do
    local entry = entry_of(ARGV[i])
    local rank = entry and rank_of(entry)
    if KEYS[2] and entry and not rank then
      return -1
    end
    reply[#reply + 1] = rank or -1
    local score = rank and redis.call('ZSCORE', KEYS[1], entry) or '0'
    if not whole(score, -9007199254740991) then
      return -4
    end
    reply[#reply + 1] = score
  end
  return reply
elseif what == 'rank' then
  local best, first = ARGV[3] == 'best', tonumber(ARGV[4])
  return page_of(best and first or card - 1 - first, range(best, first, ARGV[5]))
elseif what == 'score' then
  local best, first = ARGV[5] == 'best', tonumber(ARGV[6])
  local falling = best == high
  local before -- number of members with better scores
  if falling then
    before = redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[4], '+inf')
  else
    before = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[3])
  end
  return page_of(best and before + first or card - 1 - before - first,
    redis.call(falling and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE', KEYS[1], ARGV[falling and 4 or 3],
      ARGV[falling and 3 or 4], 'WITHSCORES', 'LIMIT', ARGV[6], ARGV[7]))
elseif what == 'around' then
  local entry = entry_of(ARGV[3])
  local rank = entry and rank_of(entry)
  if not rank then
    return KEYS[2] and entry and -1 or {0, {}}
  end
  local first = math.max(0, rank - ARGV[4])
  return page_of(first, range(true, first, rank - first + 1 + ARGV[5]))
elseif ARGV[3] then
  return redis.call('ZCOUNT', KEYS[1], ARGV[3], ARGV[4])
end
return card
