-- Makes somebody the owner of a worker, whose lock he has.
-- KEYS[1]: the worker's record, a hash: owner; until, the last time for which ids may have been issued, in milliseconds
--   since 1970; epoch; server, who wrote that. ARGV[1]: the new owner. ARGV[2]: his clock, in those milliseconds.
--   ARGV[3]: how far ahead of it until may be. ARGV[4]: the epoch. ARGV[5]: who this server is, '' if that is not known.
--   ARGV[6]: for how long the record is kept, in milliseconds, from now or from until on, whichever is later.
-- Reply: {floor, until}: ids may be issued above floor, up to until. -1: what it holds is no such record; -2: it has
--   another epoch.
-- Run twice: all that the first one allowed counts as issued.
--
-- A record that is missing may have been forgotten, and one of another server may be an old one: whoever had the worker
-- may have issued ids up to as far ahead of his clock, which is taken to be the new owner's.
local known = redis.call('HMGET', KEYS[1], 'until', 'epoch', 'server', 'owner')
local now, ahead = tonumber(ARGV[2]), tonumber(ARGV[3])
local floor = now + ahead
if known[1] or known[2] or known[3] or known[4] then
  local last = known[1] and string.match(known[1], '^%d+$') and #known[1] <= 15 and tonumber(known[1])
  if not last or not known[2] or not known[4] then
    return -1
  end
  if known[2] ~= ARGV[4] then
    return -2
  end
  local same = ARGV[5] ~= '' and known[3] == ARGV[5]
  floor = same and last or math.max(last, floor)
end
local last = math.max(floor, now + ahead)
local left = math.max(0, last - 1000 * tonumber(redis.call('TIME')[1]))
local life = string.format('%.0f', left + tonumber(ARGV[6]))
redis.call('PEXPIRE', KEYS[1], life) -- who may not do this shall not leave a new one for ever
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', string.format('%.0f', last), 'epoch', ARGV[4], 'server', ARGV[5])
redis.call('PEXPIRE', KEYS[1], life)
return {floor, last}
