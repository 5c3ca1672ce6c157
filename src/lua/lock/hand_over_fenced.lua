-- Moves a lock from one token to another, with a new ttl, and counts that as a grant. It never
-- creates the key.
-- KEYS[1]: the lock. KEYS[2]: the counter, a hash: number, token. ARGV[1]: the token of the holder.
--   ARGV[2]: the new token. ARGV[3]: the ttl in ms. ARGV[4]: the ttl of the counter in ms.
-- Reply: a string: the fencing number; moved now, or before (the ttl stays as it is); n > 0: the
--   lock is free, or another token has it for n more ms; -2: another token, without a ttl.
-- Run twice: the second run finds the new token and replies the same number.
--@include stored
--@include next_number
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 1
end
if holder ~= ARGV[1] and holder ~= ARGV[2] then
  local left = redis.call('PTTL', KEYS[1])
  return left < 0 and -2 or math.max(left, 1)
end
local stored = redis.call('HMGET', KEYS[2], 'number', 'token')
if (stored[1] or stored[2]) and not whole(stored[1], 1) then
  return foreign('the fencing number')
end
if holder == ARGV[2] and stored[2] == ARGV[2] then
  return stored[1]
end
local time = redis.call('TIME')
local text = next_number(stored[1], time)
if not text then
  return used_up()
end
-- Commands that may be refused come first. A lock that was moved without a count is undone.
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
redis.call('HSET', KEYS[2], 'number', text, 'token', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return text
