-- Ends a load that has failed, if nobody has invalidated it, or begun another one, since it began.
-- KEYS[1]: the record. KEYS[2]: its generation.
-- ARGV[1]: our generation. ARGV[2]: a record that says so, or '': none is to be kept. ARGV[3]: its ttl in milliseconds.
-- ARGV[4]: until when a value that is there is not loaded again, 8 bytes for its envelope; or '': what is there is of no
--   use, and replaced.
-- ARGV[5]: how to tell who waits: 'PUBLISH', 'SPUBLISH', or '': not.
-- Reply: 1 it is ended; 0 it was not ours any more.
-- Run twice: the second run finds another generation, or none, and does nothing.
--
-- What might be refused comes first: who may not write, or not delete, or has no memory, has done nothing.
local head = redis.call('GETRANGE', KEYS[1], 0, 71)
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
if ARGV[4] ~= '' and #head == 72 and string.sub(head, 1, 5) == '\190ly\1\1' then -- a value
  redis.call('SETRANGE', KEYS[1], 16, '') -- it changes nothing
  redis.call('DEL', KEYS[2])
  redis.call('SETRANGE', KEYS[1], 16, ARGV[4])
elseif ARGV[2] ~= '' then
  redis.call('SET', KEYS[2], ARGV[1], 'KEEPTTL') -- nor does this
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
else
  redis.call('DEL', KEYS[2])
end
if ARGV[5] ~= '' then
  redis.pcall(ARGV[5], KEYS[1] .. '::filled', '')
end
return 1
