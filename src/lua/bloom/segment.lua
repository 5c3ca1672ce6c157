-- Creates an empty segment of a Bloom filter, unless it exists.
-- KEYS[1]: the segment. ARGV[1]: its header, 8 bytes. ARGV[2]: its end, in milliseconds by the
--   server's clock; 0: no end. ARGV[3]: the time until which it may be created.
-- Reply: 1 created; 2 it exists; 0 another value exists; 3 it is too late.
-- Run twice: the second run finds it.
--
-- A string that begins with 8 zero bytes counts as missing: a BITFIELD made it where a segment was
-- missing. A client that read "in creation" long ago must not put an empty segment in the place of
-- one that was lost meanwhile: then it is too late.
local head = redis.call('GETRANGE', KEYS[1], 0, 7)
if head == ARGV[1] then
  return 2
end
if head ~= '' and head ~= string.rep('\0', 8) then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = tonumber(ARGV[2])
if now > tonumber(ARGV[3]) or ends > 0 and now >= ends then
  return 3
end
if ends > 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', string.format('%.0f', ends - now))
  redis.call('PEXPIREAT', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
