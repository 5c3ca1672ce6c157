-- Reads a page of the items that count in a window.
-- KEYS[1]: a sorted set; the score of an item is the end of its time, in milliseconds since 1970.
--   ARGV[1]: the cursor of the page, 0 at first. ARGV[2]: the number of items to look at.
-- Reply: {0, cursor of the next page or 0 at the end, {items}}.
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
