-- Removes items from a window.
-- KEYS[1]: a sorted set; the score of an item is the end of its time, in milliseconds since 1970.
--   ARGV: the items.
-- Reply: the number of items that still counted; -2: scores in KEYS[1] are no times.
-- Run twice: the second run finds no items.
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
local is_time = '^' .. string.rep('%d', 13) .. '$'
if first and not (string.match(first, is_time) and string.match(last, is_time)) then
  return -2
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local n = 0
for i = 1, #ARGV do
  local counts = redis.call('ZSCORE', KEYS[1], ARGV[i])
  redis.call('ZREM', KEYS[1], ARGV[i])
  n = n + (counts and tonumber(counts) > now and 1 or 0)
end
return n
