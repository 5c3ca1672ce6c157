-- Removes a lock if it is ours, and notifies the waiters. A waiter sets the contention flag beside
-- the lock: without the flag there is nothing to notify.
-- KEYS[1]: the lock. ARGV[1]: our token; '': none. ARGV[2]: the publish command, or ''. ARGV[3]:
--   another token that the lock may have been handed over to, or ''. ARGV[4], if present: the
--   message is published without the flag, too.
-- Reply: 0: it was not ours; n: it was and is removed, and n - 1 connections got the message;
--   2147483647: it is removed, and the message could not be published.
-- Run twice: the second run replies 0 and removes nothing.
local holder = redis.call('GET', KEYS[1])
if not holder or holder == '' or (holder ~= ARGV[1] and holder ~= ARGV[3]) then
  return 0
end
local removed = redis.pcall('DEL', KEYS[1], KEYS[1] .. '::contended')
if type(removed) ~= 'number' then -- in a cluster the flag may be out of reach
  redis.call('DEL', KEYS[1])
end
if ARGV[2] == '' or (removed == 1 and not ARGV[4]) then
  return 1
end
local receivers = redis.pcall(ARGV[2], KEYS[1] .. '::wake', '')
return type(receivers) == 'number' and receivers + 1 or 2147483647
