-- A page of the items that count in a window.
-- KEYS[1]: a sorted set, in which the score of an item is the time until which it counts, in milliseconds. ARGV[1]: the
--   cursor of the page, 0 at first. ARGV[2]: how many items to look at.
-- Reply: {0, the cursor of the next page, 0 after the last one, {items}}.
-- Run twice: the same; it writes nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local page = redis.call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local items = {}
for i = 1, #page[2], 2 do
  if (tonumber(page[2][i + 1]) or 0) > now then
    items[#items + 1] = page[2][i]
  end
end
return {0, page[1], items}
