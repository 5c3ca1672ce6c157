-- Reads a page of the members of a combination of two sets. It scans the first set; for a union it
-- then scans the second set and skips the members of the first.
-- KEYS[1], KEYS[2]: the sets; KEYS[2] is optional. ARGV[1]: 'u' union, 'i' intersection, 'd'
--   difference. ARGV[2]: the index of the scanned set, 0 or 1. ARGV[3]: its cursor. ARGV[4]: the
--   number of members to look at.
-- Reply: {index, cursor, members} for the next page, both 0 at the end; -1 or -2: that key has
--   another type.
-- Run twice: the same; it writes nothing.
for i = 1, #KEYS do
  local type = redis.call('TYPE', KEYS[i]).ok
  if type ~= 'set' and type ~= 'none' then
    return -i
  end
end
local page
if ARGV[2] == '1' then
  page = redis.call('SSCAN', KEYS[2], ARGV[3], 'COUNT', ARGV[4])
else
  page = redis.call('SSCAN', KEYS[1], ARGV[3], 'COUNT', ARGV[4])
end
local members = {}
for _, member in ipairs(page[2]) do
  local wanted = true
  if ARGV[2] == '1' then
    wanted = redis.call('SISMEMBER', KEYS[1], member) == 0
  elseif KEYS[2] and ARGV[1] ~= 'u' then
    wanted = redis.call('SISMEMBER', KEYS[2], member) == (ARGV[1] == 'i' and 1 or 0)
  end
  if wanted then
    members[#members + 1] = member
  end
end
local which = tonumber(ARGV[2])
if page[1] == '0' then
  which = ARGV[1] == 'u' and KEYS[2] and which == 0 and 1 or 0
end
return {which, page[1], members}
