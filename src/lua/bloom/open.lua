-- Reads the configuration of a Bloom filter, or creates it.
-- KEYS[1]: the configuration. ARGV[1]: the first part of a new one. ARGV[2]: its lifetime in
--   milliseconds; 0: no end.
-- Reply: {the configuration, the time by the server's clock in milliseconds}.
-- Run twice: the second run finds the configuration of the first one.
--
-- The first part is followed by the time at which the filter ends, in 16 digits. All segments end
-- at that time.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local value = redis.call('GET', KEYS[1])
if not value then
  local ttl = tonumber(ARGV[2])
  local ends = ttl > 0 and now + ttl or 0
  value = ARGV[1] .. string.format('%016.0f', ends)
  if ends > 0 then
    redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', ends))
  else
    redis.call('SET', KEYS[1], value)
  end
end
return {value, now}
