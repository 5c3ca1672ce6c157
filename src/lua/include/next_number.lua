-- How scripts that grant a lease choose its fencing number. As in stored.lua, neither function calls
-- the server or raises an error.

-- The number after the stored one, and at least the server's TIME in microseconds, as text; nil: it
-- would be 2^53 or more, where a number may equal the one before it. stored: a number, or false.
local function next_number(stored, time)
  local number = time[1] * 1000000 + time[2]
  if stored and number <= tonumber(stored) then
    number = tonumber(stored) + 1
  end
  return number < 9007199254740992 and string.format('%.0f', number) or nil
end

-- The error, which the client knows as BELAY_EOVERFLOW.
local function used_up()
  return redis.error_reply('ERR the fencing number is used up')
end
