-- Whole numbers that belay wrote.

-- The number in text, a string or false: 0 to 2^53 - 1. false or nil: it is no number as belay
-- writes it.
local function number(text)
  local n = text and (text == '0' or string.match(text, '^[1-9]%d*$')) and tonumber(text)
  return n and n <= 9007199254740991 and n
end
