-- Withdraws a party from a barrier, unless it has passed.
-- KEYS[1]: waiting parties. KEYS[2]: finished parties (see barrier/arrive, KEYS[2] and KEYS[3]).
--   ARGV[1]: the party. ARGV[2]: time for which finished parties are remembered, in ms.
-- Reply: n > 0: too late, it passed in generation n; 0: withdrawn.
-- Run twice: the same. A late arrive call of the party finds that it has withdrawn.
--@include stored
local past = whole(redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0', -9007199254740991)
if not past then
  return foreign('the state of a party')
end
redis.call('ZCARD', KEYS[1])
if past > 0 then
  return past
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], string.format('%.0f', ARGV[2] - now), '-1')
redis.call('PEXPIRE', KEYS[2], ARGV[2]) -- first: if it is refused, no key without a ttl is left
redis.call('ZADD', KEYS[2], string.format('%.0f', -now), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 0
