-- Sets the contention flag of a lock, which a waiter found held, or renews it before half of its
-- ttl is over. ms: its ttl; '0': nothing is set. The flag is only a hint: without permission or
-- memory for it, the waiter polls. lease/wait/wake.c has the diagram.
local function contend(lock, ms)
  local left = ms ~= '0' and redis.pcall('PTTL', lock .. '::contended')
  if type(left) == 'number' and left < tonumber(ms) / 2 then
    redis.pcall('SET', lock .. '::contended', '', 'PX', ms)
  end
end
