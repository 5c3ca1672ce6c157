-- Takes tokens out of a bucket, or none if there are too few. With 0 tokens it only reads.
-- KEYS[1]: the number of tokens. KEYS[2]: the index of the next filling; a missing key counts as 0.
-- ARGV[1]: the tokens to take. ARGV[2]: the capacity.
-- ARGV[3]: the tokens of a missing bucket: 0 or the capacity.
-- ARGV[4]: the ttl of the tokens in milliseconds.
-- Reply: {taken, n, index}: 1 or 0, the number of tokens, the index. -1: KEYS[1] holds no number of
--   tokens. -2: KEYS[2] holds no index.
-- Run twice: takes twice.
--
-- A bucket that holds more than its capacity, because the capacity was larger before, counts as
-- full. A value that equals that of a missing key is not stored.
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
