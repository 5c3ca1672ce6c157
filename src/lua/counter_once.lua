-- Adds to a counter, unless the same operation has been here already.
-- KEYS[1]: the counter. KEYS[2]: what is known of the operation: what was added, a space, the value after it.
--   ARGV[1]: what to add. ARGV[2]: for how long the operation is known, in milliseconds. ARGV[3]: the counter's ttl in
--   milliseconds; 0: for ever. ARGV[4]: 1 if each add makes it live so long again; 0: only a new counter gets it.
-- Reply: the value after the add, as digits, as it was the first time; -1: the operation added something else; -2: what
--   KEYS[2] holds is nothing of ours.
-- Run twice: adds once.
--
-- Numbers stay text, and are added by INCRBY: Lua's are doubles. It may refuse, so it comes before what is known of the
-- operation; what a user may not do, or there is no memory for, is found out before it.
local known = redis.call('GET', KEYS[2])
if known then
  local delta, value = string.match(known, '^(%-?%d+) (%-?%d+)$')
  if not delta then
    return -2
  end
  return delta == ARGV[1] and value or -1
end
local value = ARGV[1]
if redis.call('GET', KEYS[1]) then
  redis.call('SET', KEYS[1], '', 'NX') -- it is there: this changes nothing
  if ARGV[4] == '1' then
    redis.call('PEXPIRE', KEYS[2], ARGV[3]) -- it is not there: nor does this
  end
  redis.call('INCRBY', KEYS[1], ARGV[1])
  value = redis.call('GET', KEYS[1])
  if ARGV[4] == '1' then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], value)
else
  redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. value, 'PX', ARGV[2])
return value
