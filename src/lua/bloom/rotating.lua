-- Adds items to a rotating Bloom filter, or looks items up.
-- KEYS[1]: the configuration. KEYS[2], KEYS[3], KEYS[4]: the layers of three consecutive windows.
-- ARGV[1]: the first bytes of the configuration. ARGV[2]: the header of each layer, 8 bytes.
--   ARGV[3]: '1' to add. ARGV[4]: milliseconds of a window. ARGV[5]: the number of the window of
--   KEYS[2]. ARGV[6] and so on: for each item the offsets of its bits, separated by spaces.
-- Reply: {code, the number of the present window, the time, the state, the answers}. Codes:
--   0   done
--   1   KEYS do not include this window and the one before; nothing was done
--   -1  another configuration, or none
--   -2  a layer is missing
--   -3  the state is damaged
--   The answers are one character per item: '1' added and new, or found; otherwise '0'.
-- Run twice: the items of the first run are not new to the second one.
--
-- Windows are numbered by the server's clock, in milliseconds, and begin at multiples of their
-- length. The configuration's first 96 bytes are followed by the state: in 16 digits the last
-- window in which an item was added, and '1' if an item was added in the window before. Each of
-- these has a layer. A clock that is set back by one window stays in the later window. If it is set
-- back further, layers of the future are ignored, and overwritten when their time comes. A layer
-- ends two windows after the start of its window, the configuration after the last layer, each one
-- second later than needed.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = tonumber(ARGV[4])
local this = math.floor(now / window)
local value = redis.call('GETRANGE', KEYS[1], 0, -1)
if string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return {-1, this, now, '', ''}
end
local state = string.sub(value, 97)
if state ~= '' and not (#state == 17 and string.match(state, '^%d+[01]$')) then
  return {-3, this, now, '', ''}
end
local last, before = tonumber(string.sub(state, 1, 16)) or -2, string.sub(state, 17) == '1'
if last == this + 1 then
  this = last
end
local current = this - tonumber(ARGV[5]) + 2
if current < 3 or current > 4 then
  return {1, this, now, state, ''}
end
local has_current, has_previous = last == this, last == this - 1 or last == this and before
local head = redis.call('GETRANGE', KEYS[current], 0, 7) -- must be a string or missing
if has_current and head ~= ARGV[2] or
    has_previous and redis.call('GETRANGE', KEYS[current - 1], 0, 7) ~= ARGV[2] then
  return {-2, this, now, state, ''}
end

local adds, answers = ARGV[3] == '1', {}
if adds and #ARGV > 5 and not has_current then
  local ends = (this + 2) * window + 1000
  state = string.format('%016.0f', this) .. (has_previous and '1' or '0')
  redis.call('SET', KEYS[current], ARGV[2], 'PX', string.format('%.0f', math.max(ends - now, 1)))
  redis.call('PEXPIREAT', KEYS[current], string.format('%.0f', ends))
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', ends + 1000))
  redis.call('SETRANGE', KEYS[1], 96, state)
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', ends + 1000))
  has_current = true
end

local function has(key, offsets)
  for offset in string.gmatch(offsets, '%d+') do
    if redis.call('GETBIT', KEYS[key], offset) == 0 then
      return false
    end
  end
  return true
end

local function add(offsets)
  local words, n = {}, 0
  for offset in string.gmatch(offsets, '%d+') do
    words[n + 1], words[n + 2], words[n + 3], words[n + 4] = 'SET', 'u1', offset, '1'
    n = n + 4
  end
  for _, bit in ipairs(redis.call('BITFIELD', KEYS[current], unpack(words))) do
    if bit == 0 then
      return true
    end
  end
  return false
end

for at = 6, #ARGV do
  local old
  if adds then
    old = not add(ARGV[at])
  else
    old = has_current and has(current, ARGV[at])
  end
  old = old or has_previous and has(current - 1, ARGV[at])
  answers[#answers + 1] = (old ~= adds) and '1' or '0'
end
return {0, this, now, state, table.concat(answers)}
