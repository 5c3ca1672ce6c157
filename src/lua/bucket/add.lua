-- Adds tokens to a bucket, up to its capacity, if its index is the given one. Increments the index.
-- KEYS[1]: the number of tokens. KEYS[2]: the index of the next filling; a missing key counts as 0.
-- ARGV[1]: the tokens to add. ARGV[2]: the index of this filling. ARGV[3]: the capacity.
-- ARGV[4]: the tokens of a missing bucket: 0 or the capacity.
-- ARGV[5], ARGV[6]: the ttl of the tokens and of the index, in milliseconds.
-- Reply: {added, n, index}: 1, or 0 if the index differs; the number of tokens; the index of the
--   next filling. -1: KEYS[1] holds no number of tokens. -2: KEYS[2] holds no index. An index that
--   cannot be incremented is an error.
-- Run twice: the second run finds the next index and adds nothing.
--
-- A full bucket is left unchanged, with its ttl. The index is written first: if the script stopped
-- between the two writes, a filling would be lost, but none could happen twice.
local function number(text, max)
  local n = (text == '0' or string.match(text, '^[1-9]%d*$')) and tonumber(text)
  return n and n <= max and n
end

local said = number(ARGV[2], 9007199254740990) -- 2^53 - 2
if not said then
  return redis.error_reply('ERR the index is not from 0 to 9007199254740990')
end
local tokens = number(redis.call('GET', KEYS[1]) or ARGV[4], 4503599627370496) -- 2^52
local index = number(redis.call('GET', KEYS[2]) or '0', 9007199254740991) -- 2^53 - 1
if not tokens then
  return -1
end
if not index then
  return -2
end
local capacity = tonumber(ARGV[3])
local had = math.min(tokens, capacity)
if index ~= said then
  return {0, had, index}
end
tokens = math.min(had + ARGV[1], capacity)
index = string.format('%.0f', said + 1)
if tokens ~= had and tokens == tonumber(ARGV[4]) then
  redis.call('SET', KEYS[1], '', 'NX') -- no effect; fails before the DEL if the user may not SET
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], index, 'PX', ARGV[6])
else
  redis.call('SET', KEYS[2], index, 'PX', ARGV[6])
  if tokens ~= had then
    redis.call('SET', KEYS[1], string.format('%.0f', tokens), 'PX', ARGV[5])
  end
end
return {1, tokens, said + 1}
