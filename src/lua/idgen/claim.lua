-- Makes the holder of a worker's lock the owner of the worker.
-- KEYS[1]: the worker's record, a hash: owner; until, the last time for which ids may have been
--   issued, in milliseconds since 1970; epoch; server, the identity of the server that wrote it.
--   KEYS[2]: a hash that all workers of the name share: epoch. ARGV[1]: the new owner. ARGV[2]: the
--   new owner's clock, in milliseconds since 1970. ARGV[3]: the longest time that until may be
--   ahead of it. ARGV[4]: the epoch. ARGV[5]: the identity of this server; '': unknown. ARGV[6]:
--   the lifetime of the records in milliseconds, from now or from until, whichever is later.
-- Reply: {floor, until}: ids may be issued above floor, up to until. -1: the worker's key holds no
--   record; -2: the record has another epoch; -3: the other key holds no epoch; -4: it has another
--   epoch.
-- Run twice: everything that the first run allowed counts as issued.
--
-- A missing record may have been lost, and the record of another server may be old: the last owner
-- of the worker may have issued ids up to ARGV[3] ahead of its clock, which is assumed to agree
-- with the new owner's clock.
local known = redis.call('HMGET', KEYS[1], 'until', 'epoch', 'server', 'owner')
local epoch = redis.call('HGET', KEYS[2], 'epoch')
local now, ahead = tonumber(ARGV[2]), tonumber(ARGV[3])
local floor = now + ahead
if redis.call('EXISTS', KEYS[1]) == 1 then
  local digits = known[1] and #known[1] <= 15 and string.match(known[1], '^%d+$')
  local last = digits and tonumber(digits)
  if not last or not known[2] or not known[4] then
    return -1
  end
  if known[2] ~= ARGV[4] then
    return -2
  end
  local same = ARGV[5] ~= '' and known[3] == ARGV[5]
  floor = same and last or math.max(last, floor)
end
if not epoch and redis.call('EXISTS', KEYS[2]) == 1 then
  return -3
elseif epoch and epoch ~= ARGV[4] then
  return -4
end
local last = math.max(floor, now + ahead)
local left = math.max(0, last - 1000 * tonumber(redis.call('TIME')[1]))
local life = string.format('%.0f', left + tonumber(ARGV[6]))
redis.call('PEXPIRE', KEYS[1], life) -- first, so that no record without a ttl is left
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', string.format('%.0f', last),
  'epoch', ARGV[4], 'server', ARGV[5])
redis.call('PEXPIRE', KEYS[1], life)
redis.call('HSET', KEYS[2], 'epoch', ARGV[4])
redis.call('PEXPIRE', KEYS[2], life)
return {floor, last}
