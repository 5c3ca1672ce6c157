-- Elects a candidate if there is no leader, in a term with a larger number than all earlier terms.
-- KEYS[1]: the lease, with the leader's token. KEYS[2]: the term, a hash: number, token, and value:
--   the name of the leader. ARGV[1]: our token. ARGV[2]: the ttl in ms. ARGV[3]: the ttl of the
--   term in ms. ARGV[4]: the publish command for the change of the leader, or ''. ARGV[5]: our
--   value.
-- Reply: a string: the term; elected now, or before (the ttl stays as it is); n > 0: another
--   leader, for n more ms; -2: another leader, without a ttl.
-- Run twice: the second run finds the token and replies the same term.
--@include stored
--@include next_number
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  return left < 0 and -2 or math.max(left, 1)
end
local stored = redis.call('HMGET', KEYS[2], 'number', 'token')
if (stored[1] or stored[2]) and not whole(stored[1], 1) then
  return foreign('the fencing number')
end
if holder and stored[2] == ARGV[1] then
  return stored[1]
end
local time = redis.call('TIME')
local text = next_number(stored[1], time)
if not text then
  return used_up()
end
-- Commands that may be refused come first: they have no effect on a missing key.
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX')
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[2], 'number', text, 'token', ARGV[1], 'value', ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
if ARGV[4] ~= '' then
  redis.pcall(ARGV[4], KEYS[1] .. '::wake', '')
end
return text
