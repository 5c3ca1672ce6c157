-- A page of the members of what is made of two sets, of which the first is walked; and of a union the second, but for what
-- is in the first.
-- KEYS[1], KEYS[2]: the sets; KEYS[2] need not be there. ARGV[1]: 'u' their union, 'i' the intersection, 'd' the
--   difference. ARGV[2]: which of them is being walked, 0 or 1. ARGV[3]: where in it. ARGV[4]: how many members to look at.
-- Reply: {which, where, members}: from where to go on; both are 0 when all is over; -1 or -2: that key holds something else.
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
