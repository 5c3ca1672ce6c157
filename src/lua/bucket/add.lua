-- Puts tokens into a bucket, as many as there is room for, if its index is the one that is said; the index steps.
-- KEYS[1]: how many are there, a number; where it is missing they are ARGV[4]. KEYS[2]: the index of the next filling,
--   a number; where it is missing it is 0. ARGV[1]: how many to put in. ARGV[2]: the index of this filling. ARGV[3]: the
--   capacity. ARGV[4]: the tokens of a bucket that is missing: 0 or the capacity. ARGV[5]: for how long the tokens are
--   kept after this, in milliseconds. ARGV[6]: for how long the index is, in milliseconds.
-- Reply: {added, n, index}: 1, or 0 because the index is another one; how many are there now; the index of the next
--   filling; -1 what KEYS[1] holds is no number of tokens; -2 what KEYS[2] holds is no index. An index that could not
--   step is an error.
-- Run twice: the second run finds the next index, and adds nothing.
--
-- A bucket that was full is left alone, with the ttl that it has. The index is written first: if anything could stop
-- this half way, a filling would be lost, and none could come twice.
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
  redis.call('SET', KEYS[1], '', 'NX') -- it changes nothing; who may not do that shall not have deleted anything
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], index, 'PX', ARGV[6])
else
  redis.call('SET', KEYS[2], index, 'PX', ARGV[6])
  if tokens ~= had then
    redis.call('SET', KEYS[1], string.format('%.0f', tokens), 'PX', ARGV[5])
  end
end
return {1, tokens, said + 1}
