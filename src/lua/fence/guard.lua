-- Runs one command if the request may proceed, and stores its number and token: both or neither.
-- KEYS[1]: the fence, a hash: number, token. KEYS from 2 on: the keys of the command. ARGV[1]: the
--   fencing number. ARGV[2]: the token. ARGV from 3 on: the command.
-- Reply: the reply of the command; or an error that begins with FENCED, and nothing was run.
-- Run twice: the second run runs the command again.
--
-- A number is compared as a double, which is exact up to 2^53. Its text must be the text of that
-- double. So 2^53 + 1, which is rounded, is refused, as is everything but plain digits.
--
-- The number is stored first: if that is refused (rights of the user, full memory), the command
-- must not run. A command that fails has done nothing; then the old number is restored. The command
-- is unpacked for a function call, because too many words (about 8,000) are an error there: at that
-- time nothing is written yet.
local function to_number(text)
  local n = tonumber(text)
  if n and n > 0 and n <= 9007199254740992 and string.format('%.0f', n) == text then
    return n
  end
end

local function refuse(why)
  return redis.error_reply('FENCED ' .. why)
end

local number, token = to_number(ARGV[1]), ARGV[2]
if not number then
  return refuse('not a fencing number')
end
if not token or #token < 1 or #token > 128 then
  return refuse('not a token')
end
if not ARGV[3] then
  return refuse('not a command')
end

local was = redis.call('HMGET', KEYS[1], 'number', 'token')
local known = was[1] == ARGV[1] and was[2] == token
if was[1] or was[2] then
  local seen = was[2] and to_number(was[1])
  if not seen then
    return refuse('not a fence')
  end
  if number <= seen and not known then
    return refuse('a later holder has been here')
  end
end

local function put_back()
  if was[1] then
    redis.call('HSET', KEYS[1], 'number', was[1], 'token', was[2])
  else
    redis.call('HDEL', KEYS[1], 'number', 'token')
  end
end

local function run(...)
  if known then
    return redis.pcall(...)
  end
  redis.call('HSET', KEYS[1], 'number', ARGV[1], 'token', token)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    put_back()
  end
  return reply
end

return run(unpack(ARGV, 3))
