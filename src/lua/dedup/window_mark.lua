-- Marks items in a window for a time, and reports for each whether it was new.
-- KEYS[1]: a sorted set; the score of an item is the end of its time, in milliseconds since 1970.
--   KEYS[2], optional: the stored answer of this operation id.
-- ARGV[1]: the time of an item in milliseconds. ARGV[2]: 1: start the time again, if that makes it
--   longer. ARGV[3]: maximum number of items. ARGV[4]: 1: a full window removes the items that end
--   first. ARGV[5]: ttl of the stored answer. ARGV[6]: a hash of the items, 16 characters. ARGV[7]
--   and so on: the items.
-- Reply: a digit for each item: 1 new, 0 not new, 2 new but not added, because the window is full;
--   -1: the stored answer is for other items, or is not valid; -2: scores in KEYS[1] are no times.
-- Run twice: without KEYS[2] the second run reports no item as new; with it, it repeats the first
--   answer and changes nothing.
--
-- Each run removes some of the expired items: more than it adds, but a bounded number. The key
-- lives one second longer than its items, because the ttl uses a clock that can advance inside a
-- script. It gets a quarter more, so that not each run must set it. The calls that can be refused
-- come first, in a form that changes nothing that counts.
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

redis.call('ZADD', KEYS[1], first and 'NX' or 'XX', 0, last_item or '') -- an empty write
local ttl = redis.call('PTTL', KEYS[1])
local needed = math.max(ends, last or 0) - now + 1000
local given = string.format('%.0f', math.max(ttl, needed + math.floor(ARGV[1] / 4)))
if ttl < needed or trim == size or size - trim >= most then -- the key may be deleted and made again
  redis.call('PEXPIRE', KEYS[1], given)
end
if trim > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, trim - 1)
else
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0) -- an empty range
end
if KEYS[2] then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[5])
end
size = size - trim
stale = stale - trim

local function add(item)
  redis.call('ZADD', KEYS[1], string.format('%.0f', ends), item)
end

-- Returns true if one more item may be added.
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
