-- Takes tokens out of a bucket, or none if there are not so many; of 0 tokens it only tells how the bucket stands.
-- KEYS[1]: how many are there, a number; where it is missing they are ARGV[3]. KEYS[2]: the index of the next filling,
--   a number; where it is missing it is 0. ARGV[1]: how many to take. ARGV[2]: the capacity. ARGV[3]: the tokens of a
--   bucket that is missing: 0 or the capacity. ARGV[4]: for how long the tokens are kept after this, in milliseconds.
-- Reply: {taken, n, index}: 1 or 0, how many are there now, the index; -1 what KEYS[1] holds is no number of tokens;
--   -2 what KEYS[2] holds is no index.
-- Run twice: takes twice.
--
-- A bucket that holds more than its capacity, because it had a larger one, counts as full. What says no more than a
-- missing key would is not kept.
local function number(text, max)
  local n = (text == '0' or string.match(text, '^[1-9]%d*$')) and tonumber(text)
  return n and n <= max and n
end

local tokens = number(redis.call('GET', KEYS[1]) or ARGV[3], 4503599627370496) -- 2^52
local index = number(redis.call('GET', KEYS[2]) or '0', 9007199254740991) -- 2^53 - 1
if not tokens then
  return -1
end
if not index then
  return -2
end
local wanted = tonumber(ARGV[1])
tokens = math.min(tokens, tonumber(ARGV[2]))
if wanted == 0 or wanted > tokens then
  return {0, tokens, index}
end
tokens = tokens - wanted
if tokens == tonumber(ARGV[3]) then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], string.format('%.0f', tokens), 'PX', ARGV[4])
end
return {1, tokens, index}
