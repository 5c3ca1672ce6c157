-- Adds to a counter, once per operation.
-- KEYS[1]: the counter. KEYS[2]: the record of the operation, a string: the added number, a space,
--   the value after it. Or, if ARGV[5] is not 0, the records of the counter's operations, a hash:
--   "i" and an id: the operation's number, the time until which it is remembered, the added number,
--   the value after it, separated by spaces; "s" and a number: the id of that operation; first,
--   next: the numbers of the oldest and of the next operation; until: the latest of those times.
--   Times are this server's, in milliseconds.
-- ARGV[1]: the number to add. ARGV[2]: the lifetime of the record in milliseconds. ARGV[3]: the
--   counter's ttl in milliseconds; 0: no end. ARGV[4]: 1 if each add sets the ttl; 0: only a new
--   counter gets it. ARGV[5]: the maximum number of operations in the hash; 0: KEYS[2] is a string.
--   ARGV[6]: the operation's id; '' for a string.
-- Reply: the value after the first add, as digits; -1: the operation added another number; -2:
--   KEYS[2] holds a foreign value; -3: the hash is full, and its oldest operation must still be
--   remembered. With -1 to -3 nothing was changed.
-- Run twice: adds once.
--
-- The numbers of the counter stay text and are added by INCRBY, because numbers in Lua are doubles.
-- INCRBY may be refused, so it comes before the record. Missing rights or memory are found before
-- it.
--@include int64
--@include number
local most, now, first, next, last, fresh = tonumber(ARGV[5])
local gone = {}

local function text(n)
  return string.format('%.0f', n)
end
-- The number, the end, the added number and the value of a record; nil: there is none, or a foreign
-- one
local function record(id)
  local known = redis.call('HGET', KEYS[2], 'i' .. id)
  local n, till, delta, value = string.match(known or '', '^(%d+) (%d+) (%-?%d+) (%-?%d+)$')
  return number(n), number(till), delta, value, known
end

-- Remove the oldest expired operations, a few at a time.
local function age()
  while first < next and #gone < 32 do
    local slot = 's' .. text(first)
    local id = redis.call('HGET', KEYS[2], slot)
    local n, till = record(id or '')
    gone[#gone + 1] = slot
    if id and n == first then
      if not till or till > now then
        gone[#gone] = nil
        return
      end
      gone[#gone + 1] = 'i' .. id
    end
    first = first + 1
  end
end

local counter = redis.call('GET', KEYS[1])
if most == 0 then
  local known = redis.call('GET', KEYS[2])
  if known then
    local delta, value = string.match(known, '^(%-?%d+) (%-?%d+)$')
    if not is_int64(value or false) then
      return -2
    end
    return delta == ARGV[1] and value or -1
  end
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  local _, till, delta, value, known = record(ARGV[6])
  if known and not (till and is_int64(value)) then
    return -2
  elseif known and till > now then
    return delta == ARGV[1] and value or -1
  end
  local r = redis.call('HMGET', KEYS[2], 'first', 'next', 'until')
  first, next, last = number(r[1] or '0'), number(r[2] or '0'), number(r[3] or '0')
  if not (first and next and last and first <= next) then
    return -2
  elseif not r[2] and redis.call('EXISTS', KEYS[2]) == 1 then
    return -2
  end
  age()
  if next - first >= most then
    return -3
  end
  last = math.max(last, now + ARGV[2])
  -- No effect, but refused if memory is out or rights are missing.
  redis.call('SET', KEYS[1], '', counter and 'NX' or 'XX')
  redis.call('PEXPIRE', KEYS[2], text(last - now))
  redis.call('HDEL', KEYS[2], '')
  fresh = not r[2]
  redis.call('HSET', KEYS[2], 'first', r[1] or '0', 'next', r[2] or '0', 'until', r[3] or '0')
  redis.call('PEXPIRE', KEYS[2], text(last - now))
end

local said
if not counter and ARGV[3] == '0' then
  said = redis.pcall('SET', KEYS[1], ARGV[1])
elseif not counter then
  said = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
else
  if most == 0 then
    redis.call('SET', KEYS[1], '', 'NX') -- no effect, because it exists
  end
  if most == 0 and ARGV[4] == '1' then
    redis.call('PEXPIRE', KEYS[2], ARGV[3]) -- no effect, because it does not exist
  end
  said = redis.pcall('INCRBY', KEYS[1], ARGV[1])
end
if type(said) == 'table' and said.err then
  if fresh then
    redis.call('HDEL', KEYS[2], 'first', 'next', 'until')
  end
  return said
end
local value = counter and redis.call('GET', KEYS[1]) or ARGV[1]
if counter and ARGV[4] == '1' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
if most == 0 then
  redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. value, 'PX', ARGV[2])
else
  if #gone > 0 then
    redis.call('HDEL', KEYS[2], unpack(gone))
  end
  local known = text(next) .. ' ' .. text(now + ARGV[2]) .. ' ' .. ARGV[1] .. ' ' .. value
  redis.call('HSET', KEYS[2], 'i' .. ARGV[6], known, 's' .. text(next), ARGV[6],
    'first', text(first), 'next', text(next + 1), 'until', text(last))
  redis.call('PEXPIRE', KEYS[2], text(last - now)) -- last: it may delete the key
end
return value
