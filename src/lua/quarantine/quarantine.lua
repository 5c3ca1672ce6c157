-- Tells whether a server may vote: not while leases may run that it has forgotten. It may have if it is not
-- the server that wrote here first.
-- KEYS[1]: the namespace's marker, a hash: server, max_ttl, and since when (TIME in ms) the server is
--   known to be another than the one before; 0 for the first. It has no ttl.
-- ARGV[1]: who the server is: its run id and the id of its data. ARGV[2]: the longest ttl in the namespace,
--   in milliseconds. ARGV[3]: for how long a server that is another one does not vote, in milliseconds.
-- Reply: n, the longest ttl, and who it was asked about. n > 0: it votes in n milliseconds; else it has voted for -n milliseconds.
--   Or a string: the namespace has this other longest ttl.
-- Run twice: the same again.
--@include stored
local always = -9007199254740992
local function votes_in(ms)
  return {ms, tonumber(ARGV[2]), ARGV[1]}
end
local marker = redis.call('HMGET', KEYS[1], 'server', 'max_ttl', 'since')
if not marker[1] then
  redis.call('HSET', KEYS[1], 'server', ARGV[1], 'max_ttl', ARGV[2], 'since', '0')
  return votes_in(always)
end
if marker[2] ~= ARGV[2] then
  return marker[2] or ''
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local rest, since = tonumber(ARGV[3]), whole(marker[3])
if not since then
  return foreign('since when the server is another one')
end
if marker[1] ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'server', ARGV[1], 'since', now)
  return votes_in(rest)
end
if marker[3] == '0' then
  return votes_in(always)
end
local left = since + rest - now
if left > rest then -- the clock was set back
  redis.call('HSET', KEYS[1], 'since', now)
  return votes_in(rest)
end
return votes_in(left)
