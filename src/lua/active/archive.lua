-- Adds periods to an archive, which counts all users that were active in any of them or in those
-- added before.
-- KEYS[1]: the archive, a HyperLogLog. KEYS[2] and so on: the periods, HyperLogLogs; a missing one
--   is empty. ARGV[1]: ttl of the archive from now on, in milliseconds; '0': no end.
-- Reply: the number of users in the archive.
-- Run twice: the same, but the ttl counts from the second run.
--
-- The calls that can be refused come before the first addition: the count, and the ttl. Before them
-- comes an empty write, because a server without memory refuses only the first write of a script.
-- PFMERGE checks the types of the other keys before it writes.
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
