-- Counts a latch down by one, once for each operation. Makes a missing latch.
-- KEYS[1]: the latch, a hash: count; made: the time (TIME in microseconds) at which it was made,
--   which distinguishes it from earlier latches; and a field for each counted operation: ':' and
--   its id.
-- ARGV[1]: the count. ARGV[2]: the ttl in ms, from the time when it is made. ARGV[3]: the
--   operation. ARGV[4]: the publish command for the opening, or ''. ARGV[5]: the shortest time for
--   which a counted operation is remembered, in ms: as long as the call may be sent again.
-- Reply: n >= 0: the number left to count; -1: the latch has another count.
-- Run twice: the second run counts nothing, and replies the number that is left then.
--
-- The count and the operations are one key: neither can be lost without the other. Operations after
-- the opening are not stored: they can never count.
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
  if type(expires) == 'table' then -- refused: no key without a ttl may stay
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
  if short then -- first: if it is refused, nothing was counted
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
