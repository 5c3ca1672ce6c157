-- Changes the time until which a stored VALUE is fresh.
-- KEYS[1]: the record.
-- ARGV[1]: the new time, 8 bytes for the header of the record.
-- ARGV[2]: the new ttl in milliseconds.
-- ARGV[3]: the present generations of its tags, concatenated as from byte 72 on; '': no tags.
-- Reply: 1 if done; 0 if there is no VALUE (ABSENT and ERROR are none) or one of its tags was
--   invalidated; -1 if the key holds no record.
-- Run twice: the second run does the same, with a ttl that counts from then.
--
-- Commands that a server can refuse come before any change: without the permission to write, or
-- without memory, nothing is done.
local head = redis.call('GETRANGE', KEYS[1], 0, 71)
if head == '' then
  return -redis.call('EXISTS', KEYS[1])
end
if #head < 72 or string.sub(head, 1, 4) ~= '\190ly\1' then
  return -1
end
if string.byte(head, 5) ~= 1 or string.byte(head, 7) * 16 ~= #ARGV[3] then
  return 0
end
if ARGV[3] ~= '' and redis.call('GETRANGE', KEYS[1], 72, 71 + #ARGV[3]) ~= ARGV[3] then
  return 0
end
redis.call('SETRANGE', KEYS[1], 8, '') -- changes nothing; the server may refuse it
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SETRANGE', KEYS[1], 8, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2]) -- last: it deletes the record if the ttl is over
return 1
