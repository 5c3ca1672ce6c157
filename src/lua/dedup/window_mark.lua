-- Marks items in a window, each for some time, and tells of each whether it was new.
-- KEYS[1]: a sorted set, in which the score of an item is the time until which it counts, in milliseconds. KEYS[2], which
--   need not be there: what was answered under this operation's id. ARGV[1]: for how long an item counts, in milliseconds.
--   ARGV[2]: 1: its time begins anew, if that makes it longer. ARGV[3]: how many there may be. ARGV[4]: 1: those whose time
--   is over first make room. ARGV[5]: for how long the answer is kept. ARGV[6]: tells these items from others, 16
--   characters. ARGV[7] and so on: the items.
-- Reply: a digit for each item: 1 it was new, 0 it was not, 2 it was, and there is no room; -1: the answer that is kept is
--   one of other items, or no answer; -2: scores in KEYS[1] are no times.
-- Run twice: without KEYS[2] the second answer is that nothing was new; with it, it is the first one, and nothing is done.
--
-- Of what does not count any more some is thrown out each time: more than comes in, and never much. The key outlives what
-- is in it by a second, since time may go on inside a script, and not for the ttl; and is given a quarter more, so as not
-- to be given it each time. What might be refused comes first, where it changes nothing that counts.
local kept = KEYS[2] and redis.call('GET', KEYS[2])
if kept and kept ~= '' then
  local same, digits = string.sub(kept, 1, 16) == ARGV[6], string.sub(kept, 17)
  if not string.match(digits, '^[012]+$') or same and #digits ~= #ARGV - 6 then
    return -1
  end
  return same and digits or -1
end

local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local last_item, last = unpack(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES'))
local is_time = '^' .. string.rep('%d', 13) .. '$' -- of this or the next two centuries
if first and not (string.match(first, is_time) and string.match(last, is_time)) then
  return -2
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = now + ARGV[1]
local most, evict = tonumber(ARGV[3]), ARGV[4] == '1'
local size = redis.call('ZCARD', KEYS[1])
local stale = redis.call('ZCOUNT', KEYS[1], '-inf', now)
local trim = math.min(stale, #ARGV + 64)

redis.call('ZADD', KEYS[1], first and 'NX' or 'XX', 0, last_item or '') -- nothing; but it may be refused
local ttl = redis.call('PTTL', KEYS[1])
local needed = math.max(ends, last or 0) - now + 1000
local given = string.format('%.0f', math.max(ttl, needed + math.floor(ARGV[1] / 4)))
if ttl < needed or trim == size or size - trim >= most then -- the key may go, and come again
  redis.call('PEXPIRE', KEYS[1], given)
end
if trim > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, trim - 1)
else
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0) -- nothing
end
if KEYS[2] then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[5])
end
size = size - trim
stale = stale - trim

local function add(item)
  redis.call('ZADD', KEYS[1], string.format('%.0f', ends), item)
end

-- Whether there is room for one more.
local function make_room()
  local surplus = math.min(size - most + 1, 16, evict and size or stale)
  if size < most or surplus == 0 then
    return size < most
  end
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, surplus - 1)
  size = size - surplus
  stale = math.max(stale - surplus, 0)
  return true
end

local answers = {}
for i = 7, #ARGV do
  local counts = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]))
  local answer = 1
  if counts and counts > now then
    answer = 0
    if ARGV[2] == '1' and counts < ends then
      add(ARGV[i])
    end
  elseif counts then
    add(ARGV[i])
    stale = stale - 1
  elseif make_room() then
    add(ARGV[i])
    size = size + 1
  else
    answer = 2
  end
  answers[i - 6] = answer
end
answers = table.concat(answers)
if redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], given)
end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[6] .. answers, 'PX', ARGV[5])
end
return answers
