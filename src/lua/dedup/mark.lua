-- Marks items in a set, a HyperLogLog or a bitmap, and reports for each whether it was new.
-- KEYS[1]: the set. KEYS[2], optional: the stored answer of this operation id.
-- ARGV[1]: 's' set, 'c' HyperLogLog, 'b' bitmap. ARGV[2]: ttl of a new key in milliseconds; 0:
--   none. ARGV[3]: 1: the ttl also starts again for an existing key. ARGV[4]: ttl of the stored
--   answer. ARGV[5]: a hash of the items, 16 characters. ARGV[6] and so on: the items; for a bitmap
--   SET, u1, the number, 1 for each.
-- Reply: a digit for each item: 1 new, 0 not new or (HyperLogLog) not known to be new; -1: the
--   stored answer is for other items, or is not valid.
-- Run twice: without KEYS[2] the second run reports no item as new; with it, it repeats the first
--   answer and changes nothing.
--
-- All calls that can be refused come first, in a form that changes nothing lasting: an empty write,
-- the ttl, and an empty answer, which does not count as one.
local kept = KEYS[2] and redis.call('GET', KEYS[2])
if kept and kept ~= '' then
  local same, digits = string.sub(kept, 1, 16) == ARGV[5], string.sub(kept, 17)
  local n = ARGV[1] == 'b' and (#ARGV - 5) / 4 or #ARGV - 5
  if not string.match(digits, '^[01]+$') or same and #digits ~= n then
    return -1
  end
  return same and digits or -1
end

local kind, ttl, there = ARGV[1], ARGV[2]
if kind == 's' then
  there = redis.call('SCARD', KEYS[1]) > 0
elseif kind == 'b' then
  there = redis.call('STRLEN', KEYS[1]) > 0
else
  local magic = redis.call('GETRANGE', KEYS[1], 0, 3)
  if magic ~= 'HYLL' and (magic ~= '' or redis.call('EXISTS', KEYS[1]) == 1) then
    return redis.error_reply('WRONGTYPE it is no HyperLogLog')
  end
  there = magic ~= ''
end

if ttl ~= '0' and (ARGV[3] == '1' or not there) then
  redis.call('SET', KEYS[1], '', there and 'NX' or 'XX') -- an empty write
  redis.call('PEXPIRE', KEYS[1], ttl)
end
if KEYS[2] then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[4])
end
local answers = {}
if kind == 'b' then
  local old = redis.call('BITFIELD', KEYS[1], unpack(ARGV, 6))
  for i = 1, #old do
    answers[i] = 1 - old[i]
  end
else
  for i = 6, #ARGV do
    local added
    if kind == 's' then
      added = redis.call('SADD', KEYS[1], ARGV[i])
    else
      added = redis.pcall('PFADD', KEYS[1], ARGV[i])
    end
    if type(added) == 'table' then -- a damaged key: remove the empty answer
      if KEYS[2] and not kept then
        redis.call('PEXPIRE', KEYS[2], 0)
      end
      return added
    end
    answers[i - 5] = added
  end
end
answers = table.concat(answers)
if ttl ~= '0' and (ARGV[3] == '1' or not there) then -- last: it deletes the key if the ttl is over
  redis.call('PEXPIRE', KEYS[1], ttl)
end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[5] .. answers, 'PX', ARGV[4])
end
return answers
