-- Extends permits that are ours to at least a ttl from now; never shortens them. With a limit of 1,
-- a missing permit can be acquired again. ARGV[4] restores the number of permits if the hash was
-- lost.
-- KEYS: see semaphore/acquire; the first two. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]:
--   the ttl for acquiring the only permit again, in ms; 0: do not acquire it. ARGV[4]: number of
--   permits.
-- Reply: 1: extended; 0: not ours; 2: the only permit was free, and is ours again.
-- Run twice: the same, counted from the second run; 1 after a 2.
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
  local others = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
  if ARGV[3] == '0' or others > 0 then
    return 0
  end
  ttl = tonumber(ARGV[3])
end

local function remember()
  redis.call('PEXPIRE', KEYS[1], 604800000) -- seven days; the longest permit lasts one
  redis.call('PEXPIRE', KEYS[2], 604800000)
end

remember() -- first: a script that has written continues when the server's memory is full
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
-- Always a write: see lock/extend.
redis.call('ZADD', KEYS[1], string.format('%.0f', math.max(out, now + ttl)), ARGV[1])
if retake then
  remember()
end
return retake and 2 or 1
