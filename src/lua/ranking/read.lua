-- Reads a board: where members stand, who stands where, how many there are.
-- KEYS[1], KEYS[2]: the board, as ranking/submit.lua has it. ARGV[1]: its kind, as there. ARGV[2] and so on, one of
--   "find", member, member ...; "rank", from, first, n: n of them from there on; "score", min, max, from, first, n: the
--   same among those with these scores; "around", member, before, after: those, and the member between them; "count";
--   "count", min, max. from: "best" or "worst", which end they are counted and told from.
-- Reply: "find": {rank, score, ...}, two for each; -1 and "0": it is not there. "rank", "score", "around": {rank of the
--   first one, {member, score, ...}}, members with their turns before them. "count": a number. -1: one of the keys is
--   gone, or part of it; -2: what KEYS[2] holds is no such hash; -3: its kind is another one than ARGV[1]; -4: a score
--   that is stored is no such number.
-- Run twice: says the same. It writes nothing.
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

local function entry_of(member) -- false: it is not there
  if not KEYS[2] then
    return member
  end
  local code = redis.call('HGET', KEYS[2], member)
  return code and code .. member
end

local function rank_of(entry)
  return redis.call(high and 'ZREVRANK' or 'ZRANK', KEYS[1], entry)
end

-- n of them, from the first-th one on, as they stand when the best or the worst one comes first.
local function range(best, first, n)
  return redis.call(best == high and 'ZREVRANGE' or 'ZRANGE', KEYS[1], first, first + n - 1, 'WITHSCORES')
end

-- What is replied about members and their scores, if these are such as ranking/submit.lua writes.
local function told(first, list)
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
  return told(best and first or card - 1 - first, range(best, first, ARGV[5]))
elseif what == 'score' then
  local best, first = ARGV[5] == 'best', tonumber(ARGV[6])
  local falling = best == high
  local before -- those whose scores come before the first of these
  if falling then
    before = redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[4], '+inf')
  else
    before = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[3])
  end
  return told(best and before + first or card - 1 - before - first,
    redis.call(falling and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE', KEYS[1], ARGV[falling and 4 or 3],
      ARGV[falling and 3 or 4], 'WITHSCORES', 'LIMIT', ARGV[6], ARGV[7]))
elseif what == 'around' then
  local entry = entry_of(ARGV[3])
  local rank = entry and rank_of(entry)
  if not rank then
    return KEYS[2] and entry and -1 or {0, {}}
  end
  local first = math.max(0, rank - ARGV[4])
  return told(first, range(true, first, rank - first + 1 + ARGV[5]))
elseif ARGV[3] then
  return redis.call('ZCOUNT', KEYS[1], ARGV[3], ARGV[4])
end
return card
