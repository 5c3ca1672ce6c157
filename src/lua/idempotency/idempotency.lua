-- All changes and reads of an idempotency record.
-- KEYS[1]: the record, a hash: state ('started' or 'taken': a client processes it; 'free': its
--   client gave it back; 'done'), token and owner (of the present or last client), attempt (number
--   of begins), until (end of the owner's time by this server's clock, in milliseconds),
--   fingerprint, result ('' until it is done).
-- ARGV[1]: the operation:
--   'begin':   own the record if it is absent or free, or if the owner's time is over.
--   'extend':  let our time last for at least ARGV[3] from now.
--   'finish':  store the result.
--   'abandon': give the record back.
--   'read':    change nothing.
-- ARGV[2]: our token, 40 hexadecimal digits. ARGV[3]: our time, for 'finish' the ttl of the result,
--   in milliseconds. ARGV[4]: the time that the record is kept after our time, in milliseconds.
--   ARGV[5]: for 'begin' the fingerprint, for 'finish' the result. ARGV[6]: for 'begin' the text
--   that names us.
-- Reply: {state, ours, attempt, left, owner, result}. state: 0 absent, 1 started, 2 taken over from
--   an owner whose time was over, 3 another client processes it, 4 done, 5 free. ours: 1 or 0.
--   attempt: number of begins. left: rest of the owner's time, or of the ttl of the result (-1: no
--   end), in milliseconds. owner: the text of the owner. result: empty for the client that just
--   stored it. Or -1: the key is no record; -2: it has another fingerprint.
-- Run twice: the second run finds our token, and replies the same; 'begin' with the time that is
--   left.
--
-- A 'begin' that runs after its token was given back does not begin again. The calls that can be
-- refused come first: an operation that needs memory first rewrites the present values, and is
-- refused there if memory is out. Giving back needs no memory. A record never stays without a ttl.
--@include number
local verb, token = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'state', 'token', 'owner', 'attempt', 'until',
  'fingerprint', 'result')
local state, attempt, till = r[1], number(r[4]), number(r[5])
local ours = r[2] == token and 1 or 0
local busy = state == 'started' or state == 'taken'

local function keep(ms)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ms))
end

local function begin(how, n)
  redis.call('HSET', KEYS[1], 'state', how, 'token', token, 'owner', ARGV[6],
    'attempt', string.format('%.0f', n), 'until', string.format('%.0f', now + ARGV[3]),
    'fingerprint', ARGV[5], 'result', '')
  local refused = redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[3] + ARGV[4]))
  if type(refused) == 'table' then -- a user without that right leaves nothing
    redis.call('DEL', KEYS[1])
    return refused
  end
  return {how == 'taken' and 2 or 1, 1, n, tonumber(ARGV[3]), ARGV[6], ''}
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  return verb == 'begin' and begin('started', 1) or {0, 0, 0, 0, '', ''}
end
if not ((busy or state == 'free' or state == 'done') and
    r[2] and #r[2] == 40 and r[3] and #r[3] <= 64 and attempt and attempt > 0 and till and
    r[6] and #r[6] <= 64 and r[7] and (state == 'done' or r[7] == '')) then
  return -1
end
if verb == 'begin' and r[6] ~= ARGV[5] then
  return -2
end

if verb == 'begin' and state ~= 'done' and ours == 0 and (state == 'free' or till <= now) then
  redis.call('HSET', KEYS[1], 'owner', r[3])
  keep(ARGV[3] + ARGV[4])
  return begin(state == 'free' and 'started' or 'taken', math.min(attempt + 1, 9007199254740991))
end
if verb == 'extend' and busy and ours == 1 then
  till = math.max(till, now + ARGV[3])
  keep(till - now + ARGV[4])
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', till))
  keep(till - now + ARGV[4])
elseif verb == 'finish' and busy and ours == 1 then
  redis.call('HSET', KEYS[1], 'owner', r[3])
  keep(tonumber(ARGV[3]))
  redis.call('HSET', KEYS[1], 'state', 'done', 'result', ARGV[5])
  keep(tonumber(ARGV[3]))
  return {4, 1, attempt, tonumber(ARGV[3]), r[3], ''}
elseif verb == 'abandon' and busy and ours == 1 then
  keep(tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], 'state', 'free', 'until', '0')
  keep(tonumber(ARGV[4]))
  return {5, 1, attempt, 0, r[3], ''}
end

if state == 'done' then
  local brought = verb == 'finish' and ours == 1 and r[7] == ARGV[5]
  return {4, brought and 1 or 0, attempt, redis.call('PTTL', KEYS[1]), r[3], brought and '' or r[7]}
elseif state == 'free' then
  return {5, verb == 'abandon' and ours or 0, attempt, 0, r[3], ''}
end
local left = math.max(till - now, 0)
if ours == 1 then
  return {state == 'taken' and 2 or 1, 1, attempt, left, r[3], ''}
end
return {3, 0, attempt, left, r[3], ''}
