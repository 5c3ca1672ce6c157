-- Adds periods to an archive: it counts all who were active in any of them, or in what was added before.
-- KEYS[1]: the archive, a HyperLogLog. KEYS from 2 on: the periods, HyperLogLogs; those that are missing count as empty.
-- ARGV[1]: for how long the archive is kept after this, in milliseconds; '0': for ever.
-- Reply: how many users the archive counts now.
-- Run twice: the same again, but that the archive's life counts from the second run.
--
-- What may be refused is called before anything is added: the archive is counted, and said to be kept; and before that it
-- is written to, with nothing, since where memory is short a server refuses only what is the first to write. The other
-- keys' types are looked at by PFMERGE before it writes.
local function keep()
  if ARGV[1] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  else
    redis.call('PERSIST', KEYS[1])
  end
end

redis.call('PFCOUNT', KEYS[1])
redis.call('SETRANGE', KEYS[1], 0, '')
keep()
redis.call('PFMERGE', unpack(KEYS))
keep()
return redis.call('PFCOUNT', KEYS[1])
