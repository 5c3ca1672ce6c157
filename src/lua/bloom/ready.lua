-- Marks the configuration of a Bloom filter as ready: all of its segments are there.
-- KEYS[1]: the configuration. ARGV[1]: what it begins with so far. ARGV[2]: what it begins with from now on, as many
--   bytes.
-- Reply: 1 it does; 0 it is another one, or gone.
-- Run twice: the second run finds it marked.
local value = redis.call('GET', KEYS[1])
if not value then
  return 0
end
local first, rest = string.sub(value, 1, #ARGV[1]), string.sub(value, #ARGV[1] + 1)
if first == ARGV[2] then
  return 1
end
if first ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. rest, 'KEEPTTL')
return 1
