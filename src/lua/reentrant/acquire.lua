-- Acquires a lock for an owner, or adds a hold if the owner has the lock already.
-- KEYS[1]: the lock, with the owner. KEYS[2]: the holds of the owner, a hash: owner; number, if the
--   grants are counted; and for each hold its token: the expiry (TIME in ms), a space, and the
--   number of holds at its grant. KEYS[3], if the grants are counted: the counter, a hash: number,
--   token. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: the owner. ARGV[4]: the ttl of the
--   contention flag (see lock/acquire). ARGV[5]: the ttl of the counter.
-- Reply: {holds, number}: the number of holds, and their common fencing number ('' without one); or
--   an integer, as of lock/acquire: n > 0: another owner, for n more ms; -2: another, without a
--   ttl.
-- Run twice: the second run finds the hold and replies the same; the ttl stays as it is. If the
--   hold has expired meanwhile, it is acquired again.
--
-- The fields of KEYS[2] count only while their owner has the lock. The lock lives as long as the
-- longest hold.
--@include contend
--@include stored
--@include next_number
local holder = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if holder and holder ~= ARGV[3] then
  contend(KEYS[1], ARGV[4])
  return left < 0 and -2 or math.max(left, 1)
end
local fields = redis.call('HGETALL', KEYS[2])
local counter = KEYS[3] and redis.call('HMGET', KEYS[3], 'number', 'token')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local owner, number, ours
local holds, last, over = 0, now + left, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if field == 'owner' then
    owner = value
  elseif field == 'number' then
    number = value
  else
    local expiry, count = string.match(value, '^(%d+) (%d+)$')
    expiry, count = whole(expiry), whole(count, 1)
    if not expiry or not count then
      return foreign('a hold')
    end
    if expiry <= now then
      over[#over + 1] = field
    else
      holds = holds + 1
      last = math.max(last, expiry)
      if field == ARGV[1] then
        ours = count
      end
    end
  end
end
if number and not whole(number, 1) or
    counter and (counter[1] or counter[2]) and not whole(counter[1], 1) then
  return foreign('the fencing number')
end
local fresh = not holder or owner ~= holder or holds == 0
if fresh then
  number, ours, holds, last, over = nil, nil, 0, now + left, {}
end

local counted = false
if KEYS[3] and not number then
  number = next_number(counter[1], time)
  if not number then
    return used_up()
  end
  counted = true
end
-- Commands that may be refused come first: they have no effect on a missing key.
if not ours and not holder then
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2], 'XX')
end
if counted then
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
if ours and counted then
  redis.call('HSET', KEYS[2], 'number', number)
end
if not ours then
  local expiry = now + tonumber(ARGV[2])
  ours = holds + 1
  last = string.format('%.0f', math.max(last, expiry))
  if fresh then
    redis.call('DEL', KEYS[2])
    redis.call('PEXPIREAT', KEYS[2], last)
  end
  local hold = string.format('%.0f %d', expiry, ours)
  redis.call('HSET', KEYS[2], 'owner', ARGV[3], ARGV[1], hold)
  for i = 1, #over do
    if over[i] ~= ARGV[1] then
      redis.call('HDEL', KEYS[2], over[i])
    end
  end
  if counted then
    redis.call('HSET', KEYS[2], 'number', number)
  end
  redis.call('PEXPIREAT', KEYS[2], last) -- last: it may delete the key
  if not holder then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
  end
  redis.call('PEXPIREAT', KEYS[1], last)
end
if counted then
  redis.call('HSET', KEYS[3], 'number', number, 'token', ARGV[1])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
return {ours, KEYS[3] and number or ''}
