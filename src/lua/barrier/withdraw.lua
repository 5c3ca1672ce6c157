-- Withdraws a party from a barrier, unless that has opened for it.
-- KEYS[1]: who waits, a sorted set: a party, and until when its place is kept. KEYS[2]: who is through, a sorted set:
--   a party, and the generation that it was one of; or minus the time (TIME in milliseconds) at which it withdrew.
-- ARGV[1]: the party. ARGV[2]: who is through is remembered for so long, in milliseconds.
-- Reply: n > 0: too late, it was one of the n-th generation; 0 it has withdrawn.
-- Run twice: the same again. What it has sent before, and is executed after this, finds that it has withdrawn.
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
redis.call('PEXPIRE', KEYS[2], ARGV[2]) -- first: where it is refused, nothing is left that has no ttl
redis.call('ZADD', KEYS[2], string.format('%.0f', -now), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 0
