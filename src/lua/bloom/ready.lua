-- Marks the configuration of a Bloom filter as ready: all of its segments exist.
-- KEYS[1]: the configuration. ARGV[1]: its present first part. ARGV[2]: its new first part, of the
--   same length.
-- Reply: 1 marked; 0 another configuration, or none.
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
