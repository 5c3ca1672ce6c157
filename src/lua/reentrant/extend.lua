-- Extends a hold that is ours, and its lock, to at least a ttl from now; never shortens them.
-- KEYS[1]: the lock, with the owner. KEYS[2]: the holds (see reentrant/acquire). ARGV[1]: our
--   token. ARGV[2]: the ttl in ms. ARGV[3]: '0': a missing hold is not set again.
-- Reply: 1: extended; 0: not ours.
-- Run twice: the same, counted from the second run.
--@include stored
local holder = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
local fields = redis.call('HGETALL', KEYS[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local owner, ours, count
local last, over = now + left, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if field == 'owner' then
    owner = value
  elseif field ~= 'number' then
    local expiry, nth = string.match(value, '^(%d+) (%d+)$')
    expiry = whole(expiry)
    if not expiry then
      return foreign('a hold')
    end
    if expiry <= now then
      over[#over + 1] = field
    else
      last = math.max(last, expiry)
      if field == ARGV[1] then
        ours, count = expiry, nth
      end
    end
  end
end
if not holder or owner ~= holder or not ours then
  return 0
end
local expiry = math.max(ours, now + tonumber(ARGV[2]))
last = string.format('%.0f', math.max(last, expiry))
-- These come first: a script that has written continues when the server's memory is full.
redis.call('PEXPIREAT', KEYS[1], last)
redis.call('PEXPIREAT', KEYS[2], last)
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f ', expiry) .. count)
for i = 1, #over do
  redis.call('HDEL', KEYS[2], over[i])
end
redis.call('PEXPIREAT', KEYS[2], last)
return 1
