-- Lets the owner of a worker issue ids for longer, or records the end of its use.
-- KEYS[1]: the worker's record; KEYS[2]: the hash that all workers of the name share
--   (idgen/claim.lua). ARGV[1]: the owner. ARGV[2]: the new until, in milliseconds since 1970.
--   ARGV[3]: '1' the owner has ended; '0': until never decreases, because this call may be executed
--   after a later one. ARGV[4]: the identity of this server; '': unknown. ARGV[5]: the lifetime of
--   the records in milliseconds, from now or from until, whichever is later.
-- Reply: 1; 0: the record is another owner's, missing or foreign, or the workers of the name have
--   another epoch now; nothing was changed.
-- Run twice: the same again.
local known = redis.call('HMGET', KEYS[1], 'owner', 'until', 'epoch')
local epoch, last = redis.call('HGET', KEYS[2], 'epoch'), ARGV[2]
local stored = known[2] and #known[2] <= 15 and string.match(known[2], '^%d+$')
stored = stored and tonumber(stored)
if known[1] ~= ARGV[1] or not stored or not known[3] or (epoch and epoch ~= known[3]) or
    (not epoch and redis.call('EXISTS', KEYS[2]) == 1) then
  return 0
end
if ARGV[3] == '0' and stored > tonumber(last) then
  last = known[2]
end
local left = math.max(0, tonumber(last) - 1000 * tonumber(redis.call('TIME')[1]))
local life = string.format('%.0f', left + tonumber(ARGV[5]))
redis.call('PEXPIRE', KEYS[1], life)
redis.call('HSET', KEYS[1], 'until', last, 'server', ARGV[4])
redis.call('PEXPIRE', KEYS[1], life) -- again, because it deletes the key if the time is over
redis.call('HSET', KEYS[2], 'epoch', known[3])
redis.call('PEXPIRE', KEYS[2], life)
return 1
