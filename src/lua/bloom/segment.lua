-- Creates a segment of a Bloom filter, empty, unless it is there.
-- KEYS[1]: the segment. ARGV[1]: its header, 8 bytes. ARGV[2]: when it ends, in milliseconds by the server's clock; 0:
--   never. ARGV[3]: until when it may be created, so.
-- Reply: 1 created; 2 it was there; 0 there is something else; 3 it is too late.
-- Run twice: the second run finds it.
--
-- A string that begins with 8 zero bytes is what a BITFIELD left behind that came when there was no segment: it is
-- nothing. Who was away for long between reading a configuration that says "being created" and coming here must not
-- put an empty segment where one was, and was lost: it is too late then.
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
