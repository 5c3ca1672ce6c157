-- Reads the leader.
-- KEYS[1]: the lease, with the leader's token. KEYS[2]: the term, a hash: number, token, value.
-- Reply: the leader's token, its term, its value, and the rest of its lease in ms (-1: no ttl); an
--   empty array: no leader.
-- Run twice: the same. Nothing is written.
--@include stored
local holder = redis.call('GET', KEYS[1])
local term = redis.call('HMGET', KEYS[2], 'number', 'token', 'value')
if not holder then
  return {}
end
if term[2] ~= holder then
  return redis.error_reply('WRONGTYPE who holds it was not elected')
end
if not whole(term[1], 1) then
  return foreign('the term')
end
return {holder, term[1], term[3] or '', redis.call('PTTL', KEYS[1])}
