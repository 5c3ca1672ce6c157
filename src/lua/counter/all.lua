-- All fields of a hash, if they are not too many.
-- KEYS[1]: the hash. ARGV[1]: how many fields at most. ARGV[2]: how many bytes the reply may take where it is read: each
--   string so many as it has, at most 2,048 that are left unused beside it, and 192.
-- Reply: name, value, name, value; or a number alone: how many fields there are, which are too many, or too long.
-- Run twice: the same.
local n = redis.call('HLEN', KEYS[1])
if n > tonumber(ARGV[1]) then
  return n
end
local all = redis.call('HGETALL', KEYS[1])
local bytes = 4096
for i = 1, #all do
  bytes = bytes + #all[i] + math.min(#all[i], 2048) + 192
end
if bytes > tonumber(ARGV[2]) then
  return n
end
return all
