-- Adds to fields of a hash: to all of them, or to none.
-- KEYS[1]: the hash. ARGV[1]: its ttl in milliseconds; 0: no end. ARGV[2]: 1 if each add sets the
--   ttl; 0: only a new hash gets it. Then four arguments per field: ARGV[3]: its name, different
--   from the others. ARGV[4]: the number to add. ARGV[5], ARGV[6]: the least and the greatest value
--   before.
-- Reply: the value of each field now, as digits.
-- Run twice: adds twice.
--
-- All numbers have 64 bits and stay text, because numbers in Lua are doubles. They are compared by
-- their digits before the first write, and added by HINCRBY; the values are then read again.
--@include int64
--@include int64_order
local CHUNK = 1000 -- arguments of one unpack()

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
if lives then -- missing rights and memory are found before the first add
  redis.call('SET', KEYS[1], '', new and 'XX' or 'NX') -- no effect
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
for i = 1, #names do
  redis.call('HINCRBY', KEYS[1], names[i], ARGV[4 * i])
end
if lives then -- last, because it deletes the key if the ttl is over
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return read()
