-- All that is done to the record of a request that is to be processed once.
-- KEYS[1]: the record, a hash: state ('started', 'taken': it is being processed; 'free': who did has given it back;
--   'done'), token and owner (whose it is, or was last), attempt (how many have begun), until (to when it is his
--   alone, by this server's clock, in milliseconds), fingerprint, result ('' until it is done).
-- ARGV[1]: what is to be done:
--   'begin':   make it ours, if it is nobody's: not there, free, or its owner's time is over.
--   'extend':  our time is to last for at least so long from now.
--   'finish':  the result is there, and it is done.
--   'abandon': give it back.
--   'read':    change nothing.
-- ARGV[2]: our token, 40 hexadecimal digits. ARGV[3]: our time; of 'finish' for how long the result is kept; in
--   milliseconds. ARGV[4]: for how long the record is kept beyond our time, in milliseconds. ARGV[5]: of 'begin' the
--   fingerprint, of 'finish' the result. ARGV[6]: of 'begin' who we are, in words.
-- Reply: {state, ours, attempt, left, owner, result}: 0 it is not there, 1 started, 2 taken over from one whose time
--   was over, 3 somebody else processes it, 4 done, 5 free; 1 or 0 whether it is ours; how many have begun; how much
--   is left, of the time of its owner, or of that for which a result is kept (-1: for ever), in milliseconds; his
--   words; the result, if somebody asks who has not just brought it. -1: the record is none. -2: it has another
--   fingerprint.
-- Run twice: the second run finds our token, and answers the same; of 'begin' with what is left by then.
--
-- A 'begin' that runs when its token has been given back does not begin again. What might be refused comes first: who
-- takes memory writes what is there once more before anything else, and is refused then if there is none; to be given
-- back needs none. A record without a ttl is never left behind.
--@include number
local verb, token = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'state', 'token', 'owner', 'attempt', 'until', 'fingerprint', 'result')
local state, attempt, till = r[1], number(r[4]), number(r[5])
local ours = r[2] == token and 1 or 0
local busy = state == 'started' or state == 'taken'

local function keep(ms)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ms))
end

local function begin(how, n)
  redis.call('HSET', KEYS[1], 'state', how, 'token', token, 'owner', ARGV[6], 'attempt', string.format('%.0f', n),
    'until', string.format('%.0f', now + ARGV[3]), 'fingerprint', ARGV[5], 'result', '')
  local said = redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[3] + ARGV[4]))
  if type(said) == 'table' then -- who may not do that shall not leave anything
    redis.call('DEL', KEYS[1])
    return said
  end
  return {how == 'taken' and 2 or 1, 1, n, tonumber(ARGV[3]), ARGV[6], ''}
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  return verb == 'begin' and begin('started', 1) or {0, 0, 0, 0, '', ''}
end
if not ((busy or state == 'free' or state == 'done') and r[2] and #r[2] == 40 and r[3] and #r[3] <= 64 and
    attempt and attempt > 0 and till and r[6] and #r[6] <= 64 and r[7] and (state == 'done' or r[7] == '')) then
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
