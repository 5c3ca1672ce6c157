-- How scripts read numbers of 64 bits, which Lua's numbers cannot hold: as text.

-- Whether the text, or false, is a number of 64 bits, as the server writes it.
local function is_int64(text)
  local minus, digits = string.match(text or '', '^(%-?)([1-9]%d*)$')
  local most = minus == '-' and '9223372036854775808' or '9223372036854775807'
  return text == '0' or digits and (#digits < 19 or #digits == 19 and digits <= most)
end
