-- Makes the value that is there fresh for longer, or for less long.
-- KEYS[1]: the record. ARGV[1]: until when it is fresh, 8 bytes for its envelope. ARGV[2]: its ttl in milliseconds.
-- ARGV[3]: the generations of its tags, one after the other, as bytes 72 and following; '': it has none.
-- Reply: 1 done; 0 there is none, or one of its tags was invalidated; -1 what is there is no record.
-- Run twice: it does the same again, with a ttl that counts from then.
--
-- That something does not exist, or that a load failed, is no value. What might be refused comes first: who may not write,
-- or has no memory, has done nothing.
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
redis.call('SETRANGE', KEYS[1], 8, '') -- it changes nothing
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SETRANGE', KEYS[1], 8, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2]) -- last: it deletes the record if the ttl is over
return 1
