-- Tells whether a server may vote: not while leases may run that it has forgotten. It may have if it is not
-- the server that wrote here first.
-- KEYS[1]: the namespace's marker, a hash: run_id, max_ttl, and since when (TIME in ms) the server is
--   known to be another than the one before; 0 for the first. It has no ttl.
-- ARGV[1]: the server's run id. ARGV[2]: the longest ttl in the namespace, in milliseconds.
-- ARGV[3]: for how long a server that is another one does not vote, in milliseconds.
-- Reply: n > 0 it votes in n milliseconds; n <= 0 it has voted for -n milliseconds; a string: the
--   namespace has this other longest ttl.
-- Run twice: the same again.
local always = -9007199254740992
local marker = redis.call('HMGET', KEYS[1], 'run_id', 'max_ttl', 'since')
if not marker[1] then
  redis.call('HSET', KEYS[1], 'run_id', ARGV[1], 'max_ttl', ARGV[2], 'since', '0')
  return always
end
if marker[2] ~= ARGV[2] then
  return marker[2] or ''
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local rest = tonumber(ARGV[3])
if marker[1] ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'run_id', ARGV[1], 'since', now)
  return rest
end
if marker[3] == '0' then
  return always
end
local left = marker[3] + rest - now
if left > rest then -- the clock was set back
  redis.call('HSET', KEYS[1], 'since', now)
  return rest
end
return left
