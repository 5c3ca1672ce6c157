-- Makes permits that are ours last for at least a ttl from now; never shortens that. Those that are gone can be taken
-- again, where the limit is 1. How many they are is said again: the server may have lost the hash alone.
-- KEYS[1]: who has permits, a zset of tokens by TIME in ms until when. KEYS[2]: the permits, a hash: how many each token
--   has; used, their sum; limit, if it was set. ARGV[1]: our token. ARGV[2]: the ttl in
--   milliseconds. ARGV[3]: the ttl to take the only permit again with, in milliseconds, if nobody has it; 0: do not.
--   ARGV[4]: how many permits.
-- Reply: 1 they are ours and last that long; 0 they are not ours; 2 nobody had the only one, and it is ours again.
-- Run twice: the same again, counted from the second run; 1 after a 2.
--@include stored
local has = redis.call('HMGET', KEYS[2], ARGV[1], 'limit', 'used')
local out = whole(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0')
if not (out and whole(has[1] or '0') and whole(has[2] or '0') and whole(has[3] or '0')) then
  return foreign('the permits')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local retake = out <= now
local ttl = tonumber(ARGV[2])
if retake then
  if ARGV[3] == '0' or redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf') > 0 then
    return 0
  end
  ttl = tonumber(ARGV[3])
end

local function remember()
  redis.call('PEXPIRE', KEYS[1], 604800000) -- seven days; the longest permit lasts one
  redis.call('PEXPIRE', KEYS[2], 604800000)
end

remember() -- this first: what was begun with it goes on when the server's memory is full
if retake then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[2], ARGV[1], 1, 'used', 1)
  if has[2] then
    redis.call('HSET', KEYS[2], 'limit', has[2])
  end
  remember()
elseif not has[1] then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[4], 'used', (has[3] or 0) + ARGV[4])
  remember()
end
-- Written in any case: a WAIT waits only for what its own connection has written.
redis.call('ZADD', KEYS[1], string.format('%.0f', math.max(out, now + ttl)), ARGV[1])
if retake then
  remember()
end
return retake and 2 or 1
