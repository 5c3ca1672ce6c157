-- Removes a lock if it is ours, and tells who waits for it.
-- KEYS[1]: the lock. ARGV[1]: our token, or '': there is none. ARGV[2]: how to tell: 'PUBLISH', 'SPUBLISH', or '': not.
-- ARGV[3]: another token that it may have been passed to, or ''.
-- Reply: 0 it was not ours; n: it was and is removed, and n - 1 connections heard of it; 2147483647: it is removed, and
--   who waits for it could not be told.
-- Run twice: the second run replies 0 and removes nothing.
local holder = redis.call('GET', KEYS[1])
if not holder or holder == '' or (holder ~= ARGV[1] and holder ~= ARGV[3]) then
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[2] == '' then
  return 1
end
local heard = redis.pcall(ARGV[2], KEYS[1] .. '::wake', '')
return type(heard) == 'number' and heard + 1 or 2147483647
