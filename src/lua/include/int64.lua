-- Numbers of 64 bits as text, because a Lua number cannot hold them.

-- true if text, a string or false, is a number of 64 bits as the server writes it.
local function is_int64(text)
  local minus, digits = string.match(text or '', '^(%-?)([1-9]%d*)$')
  local most = minus == '-' and '9223372036854775808' or '9223372036854775807'
  return text == '0' or digits and (#digits < 19 or #digits == 19 and digits <= most)
end
