-- How scripts read whole numbers that belay wrote.

-- The number that the text, or false, is, up to 2^53 - 1; false or nil: it is none, or belay would have
-- written it in another way.
local function number(text)
  local n = text and (text == '0' or string.match(text, '^[1-9]%d*$')) and tonumber(text)
  return n and n <= 9007199254740991 and n
end
