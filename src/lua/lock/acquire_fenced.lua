-- Acquires a lock if it is free, with a fencing number that is larger than all earlier numbers.
-- KEYS[1]: the lock. KEYS[2]: the counter, a hash: number, token. ARGV[1]: our token. ARGV[2]: the
--   ttl in ms. ARGV[3]: the ttl of the contention flag (see lock/acquire). ARGV[4]: the ttl of the
--   counter in ms.
-- Reply: a string: the fencing number; acquired now, or before (the ttl stays as it is); n > 0:
--   another holder, for n more ms; -2: another holder, without a ttl.
-- Run twice: the second run finds the token and replies the same number.
--@include contend
--@include stored
--@include next_number
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  contend(KEYS[1], ARGV[3])
  local left = redis.call('PTTL', KEYS[1])
  return left < 0 and -2 or math.max(left, 1)
end
local stored = redis.call('HMGET', KEYS[2], 'number', 'token')
if (stored[1] or stored[2]) and not whole(stored[1], 1) then
  return foreign('the fencing number')
end
if holder and stored[2] == ARGV[1] then
  return stored[1]
end
local time = redis.call('TIME')
local text = next_number(stored[1], time)
if not text then
  return used_up()
end
-- Commands that may be refused come first: they have no effect on a missing key.
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX')
end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[2], 'number', text, 'token', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return text
