-- Takes the next ids out, a step of them.
-- KEYS[1]: a hash: next, the first id that nobody was given; server, who wrote that. It has no ttl.
-- ARGV[1]: the step. ARGV[2]: the step and a jump, by which next grows where ids may have been forgotten: where somebody
--   else wrote, or next is less than ARGV[3], what the caller was given ids below of ('0': none yet). ARGV[4]: who this
--   server is; '': it is not asked. ARGV[5]: what next begins with.
-- Reply: next after this, a string: the ids are the step before it. -1: what next holds is no number, or a negative one.
--   If next would leave its range that is an error, and nothing was given.
-- Run twice: takes out twice.
--
-- Numbers up to 2^63 do not fit into Lua's: HINCRBY adds, and they are compared as text. If anything stopped this half
-- way, ids would be skipped.
local function less(a, b)
  return #a < #b or (#a == #b and a < b)
end
local known = redis.call('HMGET', KEYS[1], 'next', 'server')
local text = known[1]
if text and ((text ~= '0' and not string.match(text, '^[1-9]%d*$')) or less('9223372036854775807', text)) then
  return -1
end
local first = text or ARGV[5]
local lost = (text and ARGV[4] ~= '' and known[2] ~= ARGV[4]) or less(first, ARGV[3])
if less(first, ARGV[3]) then
  first = ARGV[3]
end
if first ~= text then
  redis.call('HSET', KEYS[1], 'next', first)
end
redis.call('HINCRBY', KEYS[1], 'next', lost and ARGV[2] or ARGV[1])
if ARGV[4] ~= '' and known[2] ~= ARGV[4] then
  redis.call('HSET', KEYS[1], 'server', ARGV[4])
end
return redis.call('HGET', KEYS[1], 'next')
