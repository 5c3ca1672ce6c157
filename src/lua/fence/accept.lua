-- Accepts a fencing number, if it is larger than the one that is stored, or is that one and the same holder's.
-- KEYS[1]: the counter, a hash: number, token. ARGV[1]: the number. ARGV[2]: its holder's token.
-- ARGV[3]: for how long the counter is remembered, in milliseconds.
-- Reply: 1 accepted; 0 refused.
-- Run twice: the second run accepts too, unless a larger number came between.
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
if type(expires) == 'table' then -- refused: without a ttl it must not stay
  if not stored[1] then
    redis.call('DEL', KEYS[1])
  end
  return expires
end
return 1
