-- Adds items to a scaling Bloom filter, or looks items up.
-- KEYS[1]: the configuration. KEYS[2] and so on: the layers that ARGV[4] names, oldest first.
-- ARGV[1]: the first bytes of the configuration. ARGV[2]: the header of each layer, 8 bytes.
--   ARGV[3]: '1' to add. ARGV[4]: the layers, 22 digits each: 2 hashes, 8 bits, 12 capacity.
--   ARGV[5]: the maximum number of layers. ARGV[6] and so on: for each item and each layer the
--   offsets of its bits, separated by spaces.
-- Reply: {code, the state, the answers}. Codes:
--   0   done
--   1   the layers of the state, and the one after them, must be passed
--   2   the filter is full and cannot grow
--   -1  another configuration, or none
--   -2  a layer is missing
--   -3  the state is damaged
--   The answers are one character per item: '1' added and new, or found; otherwise '0'. Unless the
--   code is 0, the last items have no answer, and were not processed.
-- Run twice: the items of the first run are not new to the second one.
--
-- The configuration's first 96 bytes are followed by the state: in 16 digits the number of items in
-- the newest layer, and then the layers as above. Without a state there are no layers. All layers
-- end with the configuration, at the time in the last 16 of the 96 bytes. If a layer of another
-- filter exists, its configuration was lost, and the layer counts as missing.
local value = redis.call('GETRANGE', KEYS[1], 0, -1)
if string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return {-1, '', ''}
end
local state, ends = string.sub(value, 97), string.sub(value, 81, 96)
if not string.match(ends, '^%d+$') then
  return {-3, '', ''}
end
if state ~= '' and (not string.match(state, '^%d+$') or #state < 38 or #state % 22 ~= 16) then
  return {-3, '', ''}
end
local there, given = string.sub(state, 17), ARGV[4]
if string.sub(given, 1, #there) ~= there then
  return {1, state, ''}
end
local layers, most = #there / 22, #given / 22
local count = tonumber(string.sub(state, 1, 16)) or 0
local room = {}
for i = 1, most do
  room[i] = tonumber(string.sub(given, 22 * i - 11, 22 * i))
  local head = redis.call('GETRANGE', KEYS[i + 1], 0, 7) -- must be a string or missing
  if head ~= ARGV[2] and (i <= layers or head ~= '') then
    return {-2, state, ''}
  end
end

local function kept()
  return string.format('%016.0f', count) .. string.sub(given, 1, 22 * layers)
end

local function keep()
  redis.call('SETRANGE', KEYS[1], 96, kept())
end

local function has(i, offsets)
  for offset in string.gmatch(offsets, '%d+') do
    if redis.call('GETBIT', KEYS[i + 1], offset) == 0 then
      return false
    end
  end
  return true
end

local function add(i, offsets)
  local words, n = {}, 0
  for offset in string.gmatch(offsets, '%d+') do
    words[n + 1], words[n + 2], words[n + 3], words[n + 4] = 'SET', 'u1', offset, '1'
    n = n + 4
  end
  for _, bit in ipairs(redis.call('BITFIELD', KEYS[i + 1], unpack(words))) do
    if bit == 0 then
      return true
    end
  end
  return false
end

local adds, answers, what, changed, made = ARGV[3] == '1', {}, 0, false, {}
if adds and layers > 0 then
  keep() -- no effect, but refused before the first change if rights are missing
end
for at = 5, #ARGV - most, most do
  local old = false
  for i = 1, layers do
    if i < layers or not adds or count >= room[i] then
      old = has(i, ARGV[at + i])
    else
      old = not add(i, ARGV[at + i])
    end
    if old then
      break
    end
  end
  if adds and not old then
    if layers == 0 or count >= room[layers] then
      if layers >= tonumber(ARGV[5]) or layers >= most then
        what = layers >= tonumber(ARGV[5]) and 2 or 1
        break
      end
      layers = layers + 1
      if tonumber(ends) > 0 then
        redis.call('SET', KEYS[layers + 1], ARGV[2], 'PX', 60000)
        redis.call('PEXPIREAT', KEYS[layers + 1], string.format('%.0f', ends))
        made[#made + 1] = KEYS[layers + 1]
      else
        redis.call('SET', KEYS[layers + 1], ARGV[2])
      end
      count = 0
      keep()
      add(layers, ARGV[at + layers])
    end
    count = count + 1
    changed = true
  end
  answers[#answers + 1] = (old ~= adds) and '1' or '0'
end
if changed then
  keep()
end
for i = 1, #made do -- last, because it deletes the key if the time is over
  redis.call('PEXPIREAT', made[i], string.format('%.0f', ends))
end
return {what, layers > 0 and kept() or '', table.concat(answers)}
