-- Stores what was loaded, if nobody has invalidated it, or begun another load, since ours began.
-- KEYS[1]: the record. KEYS[2]: its generation.
-- ARGV[1]: our generation, which is the record's id. ARGV[2]: the record, or '': there is to be none. ARGV[3]: its ttl in
-- milliseconds.
-- ARGV[4]: how to tell who waits: 'PUBLISH', 'SPUBLISH', or '': not.
-- Reply: 1 it is stored; 0 it is not.
-- Run twice: the second run finds the record and replies 1, unless it was replaced or invalidated since; where there is
--   to be none it replies 0. It stores nothing.
--
-- What might be refused comes first: who may not write, or not delete, or has no memory, has done nothing.
local there = redis.call('GETRANGE', KEYS[1], 48, 63)
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return there == ARGV[1] and 1 or 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[2], KEYS[1])
else
  redis.call('SET', KEYS[2], ARGV[1], 'KEEPTTL') -- it changes nothing
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
if ARGV[4] ~= '' then
  redis.pcall(ARGV[4], KEYS[1] .. '::filled', '')
end
return 1
