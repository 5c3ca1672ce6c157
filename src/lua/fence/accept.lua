-- Accepts a fencing number if it is larger than the stored one, or equal with the same token.
-- KEYS[1]: the counter, a hash: number, token. ARGV[1]: the number. ARGV[2]: the token of its
--   holder. ARGV[3]: the ttl of the counter in ms.
-- Reply: 1: accepted; 0: refused.
-- Run twice: the second run accepts too, unless a larger number was stored in between.
--@include stored
local stored = redis.call('HMGET', KEYS[1], 'number', 'token')
if (stored[1] or stored[2]) and not whole(stored[1], 1) then
  return foreign('the fencing number')
end
local number, last = tonumber(ARGV[1]), tonumber(stored[1] or '0')
if number < last or (number == last and stored[2] ~= ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'number', ARGV[1], 'token', ARGV[2])
local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
if type(expires) == 'table' then -- refused: no key without a ttl may stay
  if not stored[1] then
    redis.call('DEL', KEYS[1])
  end
  return expires
end
return 1
