-- Removes members from a board: given ones, or the last ones.
-- KEYS[1], KEYS[2]: the board, as in ranking/submit.lua. ARGV[1]: its kind, as there. ARGV[2] and
--   so on: "remove", member, member ...; or "trim", size, max: down to that size, at most `max`
--   members in one run.
-- Reply: "remove": the number of members that were there. "trim": the present size. -1: a key or a
--   part of it is lost; -2: KEYS[2] is no hash of turns; -3: the board has another kind.
-- Run twice: the second run finds none of the given members; or trims members that came since.
--
-- Ttls do not change. The calls that can be refused come before the first change. The hash goes
-- with the last member.
local high = string.sub(ARGV[1], 1, 4) == 'high'
local card = redis.call('ZCARD', KEYS[1])
if KEYS[2] then
  local fields = redis.call('HLEN', KEYS[2])
  local kind = string.match(redis.call('HGET', KEYS[2], '') or '', '^([%l-]+) %d+$')
  if fields > 0 and not kind then
    return -2
  end
  if kind and kind ~= ARGV[1] then
    return -3
  end
  if card ~= math.max(fields - 1, 0) then
    return -1
  end
  redis.call('ZREM', KEYS[1], '')
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0)
end

local removed = 0
if ARGV[2] == 'remove' then
  for i = 3, #ARGV do
    local code = not KEYS[2] and '' or redis.call('HGET', KEYS[2], ARGV[i])
    if code then
      if KEYS[2] then
        redis.call('HDEL', KEYS[2], ARGV[i])
      end
      removed = removed + redis.call('ZREM', KEYS[1], code .. ARGV[i])
    end
  end
else
  removed = math.max(0, math.min(card - ARGV[3], tonumber(ARGV[4])))
  local first, last = high and 0 or -removed, high and removed - 1 or -1
  if removed > 0 then
    if KEYS[2] then
      for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], first, last)) do
        redis.call('HDEL', KEYS[2], string.sub(entry, 17))
      end
    end
    redis.call('ZREMRANGEBYRANK', KEYS[1], first, last)
  end
end
if KEYS[2] and removed == card then
  redis.call('HDEL', KEYS[2], '')
end
return ARGV[2] == 'remove' and removed or card - removed
