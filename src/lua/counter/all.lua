-- Reads all fields of a hash, if they are not too many.
-- KEYS[1]: the hash. ARGV[1]: the maximum number of fields. ARGV[2]: the maximum number of bytes of
--   the reply in the client's memory: for each string its length, up to 2,048 unused bytes, and
--   192.
-- Reply: name, value, name, value ...; or only the number of fields if they are too many or too
--   long.
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
