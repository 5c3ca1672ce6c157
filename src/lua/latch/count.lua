-- Counts a latch down by one, once for each operation; makes it if it is not there.
-- KEYS[1]: the latch, a hash: count; made: when it was made (TIME in microseconds), which tells it from the one before;
--   and a field for each operation that was counted: ':' and its id.
-- ARGV[1]: its count. ARGV[2]: its ttl in milliseconds, from when it is made. ARGV[3]: the operation.
-- ARGV[4]: how to publish that it is open; '': do not. ARGV[5]: for so long after it has counted it is remembered at
--   least, in milliseconds: as long as this may be sent again.
-- Reply: n >= 0: so many are left to count; -1 it has another count.
-- Run twice: the second run counts nothing, and replies what is left then.
--
-- What is counted and what was counted are one key: neither can be forgotten without the other. Operations
-- beyond the last one that counts need not be remembered: they can never count.
--@include stored
local latch = redis.call('HMGET', KEYS[1], 'count', 'made')
if latch[1] and latch[1] ~= ARGV[1] then
  return -1
end
local ttl = math.max(tonumber(ARGV[2]), tonumber(ARGV[5]))
local left
if latch[2] and not whole(latch[2], 1) then
  return foreign('when the latch was made')
end
if not latch[2] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE not a latch')
  end
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('HSET', KEYS[1], 'count', ARGV[1], 'made', now, ':' .. ARGV[3], '')
  local expires = redis.pcall('PEXPIRE', KEYS[1], ttl)
  if type(expires) == 'table' then -- refused: without a ttl it must not stay
    redis.call('DEL', KEYS[1])
    return expires
  end
  left = ARGV[1] - 1
else
  left = ARGV[1] - (redis.call('HLEN', KEYS[1]) - 2)
  if left <= 0 then
    return 0
  end
  if redis.call('HEXISTS', KEYS[1], ':' .. ARGV[3]) == 1 then
    return left
  end
  local rest = redis.call('PTTL', KEYS[1])
  local short = rest < tonumber(ARGV[5])
  if short then -- first: where it is refused, nothing was counted
    redis.call('PEXPIRE', KEYS[1], rest < 0 and ttl or ARGV[5])
  end
  redis.call('HSET', KEYS[1], ':' .. ARGV[3], '')
  if short then
    redis.call('PEXPIRE', KEYS[1], rest < 0 and ttl or ARGV[5]) -- last: it may delete the key
  end
  left = left - 1
end
if left == 0 and ARGV[4] ~= '' then
  redis.pcall(ARGV[4], KEYS[1] .. '::wake', '')
end
return left
