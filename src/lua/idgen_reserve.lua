-- Lets the owner of a worker issue ids for longer; or says, when he is done, up to when he has.
-- KEYS[1]: the worker's record (idgen_claim.lua). ARGV[1]: the owner. ARGV[2]: until when, in milliseconds since 1970.
--   ARGV[3]: '1' he is done; '0': until never gets less, since this may be executed behind a later one. ARGV[4]: who
--   this server is, '' if that is not known. ARGV[5]: for how long the record is kept, in milliseconds, from now or from
--   until on, whichever is later.
-- Reply: 1; 0: the record is somebody else's, or gone, and nothing was changed.
-- Run twice: the same again.
local known = redis.call('HMGET', KEYS[1], 'owner', 'until')
if known[1] ~= ARGV[1] then
  return 0
end
local last = ARGV[2]
if ARGV[3] == '0' and (tonumber(known[2] or '') or 0) > tonumber(last) then
  last = known[2]
end
local left = math.max(0, tonumber(last) - 1000 * tonumber(redis.call('TIME')[1]))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left + tonumber(ARGV[5])))
redis.call('HSET', KEYS[1], 'until', last, 'server', ARGV[4])
return 1
