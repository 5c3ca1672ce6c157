-- The fencing number of a lease that is granted. As in stored.lua, neither function calls the
-- server or raises an error.

-- The number after the stored one, at least the server's TIME in microseconds, as text. nil: it
-- would be 2^53 or more, where two numbers may be equal. stored: a number, or false.
local function next_number(stored, time)
  local number = time[1] * 1000000 + time[2]
  if stored and number <= tonumber(stored) then
    number = tonumber(stored) + 1
  end
  return number < 9007199254740992 and string.format('%.0f', number) or nil
end

-- The error that the client maps to BELAY_EOVERFLOW.
local function used_up()
  return redis.error_reply('ERR the fencing number is used up')
end
