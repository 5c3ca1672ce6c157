-- Adds to fields of a hash: to all of them, or to none.
-- KEYS[1]: the hash. ARGV[1]: its ttl in milliseconds; 0: for ever. ARGV[2]: 1 if each add makes it live so long again;
--   0: only a new hash gets it. And of each field four: ARGV[3]: its name, no other one's. ARGV[4]: what to add. ARGV[5],
--   ARGV[6]: the least and the greatest value before it.
-- Reply: the value of each field now, as digits.
-- Run twice: adds twice.
--
-- All numbers are of 64 bits, and stay text: Lua's are doubles. They are compared by their digits, before anything is
-- written, and added by HINCRBY, whose reply would come as a double: the values are read again.
--@include int64
--@include int64_order
local CHUNK = 1000 -- of what unpack() is given at a time

local names = {}
for i = 3, #ARGV, 4 do
  names[#names + 1] = ARGV[i]
end

local function read()
  local all = {}
  for i = 1, #names, CHUNK do
    local part = redis.call('HMGET', KEYS[1], unpack(names, i, math.min(i + CHUNK - 1, #names)))
    for j = 1, #part do
      all[i + j - 1] = part[j]
    end
  end
  return all
end

local before = read()
for i = 1, #names do
  local value = before[i] or '0'
  if not is_int64(value) then
    return redis.error_reply('ERR hash value is not an integer')
  end
  if not (at_most(ARGV[4 * i + 1], value) and at_most(value, ARGV[4 * i + 2])) then
    return redis.error_reply('ERR increment or decrement would overflow')
  end
end
local new = redis.call('EXISTS', KEYS[1]) == 0
local lives = ARGV[1] ~= '0' and (new or ARGV[2] == '1')
if lives then -- who may not do this, or has no memory for it, shall not have added anything
  redis.call('SET', KEYS[1], '', new and 'XX' or 'NX') -- this changes nothing
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
for i = 1, #names do
  redis.call('HINCRBY', KEYS[1], names[i], ARGV[4 * i])
end
if lives then -- last: it deletes the key if the ttl is over
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return read()
