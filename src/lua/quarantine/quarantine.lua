-- Decides if a server votes. A server that may have forgotten leases does not vote until they have
-- expired. A server is suspect if it is not the one that wrote the marker first.
-- KEYS[1]: the namespace's marker, a hash: server; max_ttl; since: the time (TIME in ms) at which
--   another server was noticed, 0 for the first server. It has no ttl.
-- ARGV[1]: the server: its run id and the id of its data. ARGV[2]: the longest ttl in the
--   namespace, in ms. ARGV[3]: time for which another server does not vote, in ms.
-- Reply: {n, the longest ttl, ARGV[1]}. n > 0: it votes in n ms; else it has voted for -n ms. Or a
--   string: the namespace has this other longest ttl.
-- Run twice: the same.
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
