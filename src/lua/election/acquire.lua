-- Elects a candidate if nobody leads: in a term whose number is larger than all before it.
-- KEYS[1]: the lease, the leader's token. KEYS[2]: the term, a hash: number, token, and value: what the leader calls
--   itself. ARGV[1]: our token. ARGV[2]: the ttl in milliseconds. ARGV[3]: for how long the term is remembered, in
--   milliseconds. ARGV[4]: how to publish that another leads; '': do not. ARGV[5]: what we call ourselves.
-- Reply: a string: elected, or elected already (the ttl is left alone), and this is the term; n > 0 another leads for n
--   more milliseconds; -2 another does, without a ttl.
-- Run twice: the second run finds the token, and replies with the same term.
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
-- What might be refused comes before what must not be done alone: none of these has an effect if its key is not there.
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
