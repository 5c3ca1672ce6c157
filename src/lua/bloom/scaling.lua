-- Adds items to a scaling Bloom filter, or looks whether it has them.
-- KEYS[1]: its configuration. KEYS[2] and so on: its layers, as many as ARGV[4] names, older ones first.
-- ARGV[1]: what the configuration begins with. ARGV[2]: the header of each layer, 8 bytes. ARGV[3]: '1' to add. ARGV[4]: the
--   layers, 22 digits each: 2 hashes, 8 bits, 12 items that it is made for. ARGV[5]: how many layers there may be. ARGV[6]
--   and so on: for each item, for each layer, where its bits are, numbers with spaces between them.
-- Reply: {what, the state, the answers}. what: 0 that was all; 1 it needs to be given the layers that the state tells, and
--   the one after them; 2 there is no room for the next item, and never will be; -1 the configuration is another one, or
--   gone; -2 a layer is gone; -3 the state is damaged. The answers are one character for each item that was dealt with: '1'
--   added, and it was new; or found; else '0'. Unless what is 0 there are none for the rest, with which nothing was done.
-- Run twice: what the first run has added is not new to the second one.
--
-- Behind the first 96 bytes of the configuration is the state: 16 digits, how many items the newest layer has; and then
-- the layers, as above. Without one there are no layers yet. All of them end with the configuration, at the time that the
-- last 16 of the 96 bytes tell. Where a layer of another filter is in the way, its configuration was lost, and is not to be
-- forgotten by that: a layer is gone.
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
  local head = redis.call('GETRANGE', KEYS[i + 1], 0, 7) -- a string, also where there is to be a layer
  if head ~= ARGV[2] and (i <= layers or head ~= '') then
    return {-2, state, ''}
  end
end

local function keep()
  redis.call('SETRANGE', KEYS[1], 96, string.format('%016.0f', count) .. string.sub(given, 1, 22 * layers))
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
  keep() -- it changes nothing; what may not be written shall be refused before anything is
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
for i = 1, #made do -- nothing is written there after this: where the time has come it is deleted
  redis.call('PEXPIREAT', made[i], string.format('%.0f', ends))
end
return {what, layers > 0 and string.format('%016.0f', count) .. string.sub(given, 1, 22 * layers) or '', table.concat(answers)}
