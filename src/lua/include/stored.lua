-- Values of keys. A value that belay did not write ends the script before its first write, with an
-- error. Neither function calls the server or raises an error: tools/embed_lua.py relies on that.

-- The number in text, a string, false or nil: from `least`, by default 0, to 2^53 - 1. nil: it is
-- no such number.
local function whole(text, least)
  local n = text and #text <= 17 and string.match(text, '^%-?%d+$') and tonumber(text)
  return n and n >= (least or 0) and n <= 9007199254740991 and n or nil
end

-- The error that the client maps to BELAY_EWRONGTYPE.
local function foreign(what)
  return redis.error_reply('WRONGTYPE this is not a value of belay: ' .. what)
end
