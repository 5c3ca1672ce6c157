-- Makes a configuration record, or compares it with the given fields and adds the missing ones.
-- KEYS[1]: the record, a hash. ARGV[1]: ttl from now on, in milliseconds; 0: no end. ARGV[2] and so
--   on, for each field: its rule ("same", "latest" or "largest"), its name, its value.
-- Reply: {1, name, value, ...}, all fields of the record; {0, name, recorded value, given value},
--   the first field that contradicts: nothing was written; -1: the hash is no record, it has more
--   than 32 fields.
-- Run twice: the same.
if redis.call('HLEN', KEYS[1]) > 32 then
  return -1
end
local all = redis.call('HGETALL', KEYS[1])
local record, names = {}, {}
for i = 1, #all, 2 do
  record[all[i]] = all[i + 1]
  names[#names + 1] = all[i]
end

-- At most 15 digits, so that a double is exact.
local function number(text)
  return #text <= 15 and text:match('^%d+$') and tonumber(text)
end

local writes = {}
for i = 2, #ARGV, 3 do
  local rule, name, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local kept = record[name]
  local take = not kept or rule == 'latest' and kept ~= value
  if kept and rule == 'same' and kept ~= value then
    return {0, name, kept, value}
  elseif kept and rule == 'largest' then
    local old, new = number(kept), number(value)
    if not old or not new then
      return {0, name, kept, value}
    end
    take = new > old
  end
  if take then
    if not kept then
      names[#names + 1] = name
    end
    record[name] = value
    writes[#writes + 1] = name
    writes[#writes + 1] = value
  end
end
if #names > 32 then
  return -1
end

-- A user that may not set a ttl fails here, before the first write.
if ARGV[1] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
else
  redis.call('PERSIST', KEYS[1])
end
if #writes > 0 then
  redis.call('HSET', KEYS[1], unpack(writes))
  if ARGV[1] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
end
local reply = {1}
for _, name in ipairs(names) do
  reply[#reply + 1] = name
  reply[#reply + 1] = record[name]
end
return reply
