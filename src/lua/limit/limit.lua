-- Up to four limits for one key: stores the used tokens and decides whether more may be taken.
--
-- KEYS[1]  the key
-- KEYS[2]  reserve, cancel: the reservation
-- ARGV[1]  take, slice, peek, penalty, refund, ban, reserve, cancel
-- ARGV[2]  the policy: for each limit four little-endian doubles: kind, P, R, B
--            kind 1  token bucket. A token is P units, R units leak per microsecond, the capacity
--                    is B units
--                 2  sliding window of P microseconds, weighted, at most B tokens
--                 3  fixed window of P microseconds that begins with the first admitted call, at
--                    most B tokens
--                 4  the same, aligned to multiples of P
--                 5  allotment: B tokens, refilled after P microseconds without an admitted call
--            B * P is at most 2^52 for kinds 2 to 5; for the bucket B and P are
-- ARGV[3]  the cost in tokens; for a bucket, cost * P is at most 2^52. A take of 0 is a peek. A
--          slice takes as many tokens as there are, at most the cost
-- ARGV[4]  little-endian doubles:
--            take     the number of equal takes, more than 1; absent or empty: one
--            slice    the smallest useful number of tokens, at least 1
--            refund   the time of the take, its `since`, and for each limit its refund number
--            ban      the duration in microseconds
--            reserve  the longest wait, and the shortest time to remember the reservation, both in
--                     microseconds
--            cancel   the time to remember the cancel, in microseconds
-- ARGV[5]  tests only: the time, instead of the server's
--
-- Reply: the integer debt, for a take that is denied if the only limit is a bucket and there is no
-- ban. Otherwise a string in the format of the stored value: four doubles, and for each limit seven
-- (a denial may have only three):
--   first    stored: the latest time of all reservations; 0: no request waits.
--            Reply: -1: denied, nothing changed. Otherwise: take, penalty, peek: 0; several takes:
--            the number that was admitted, and the others are denied; slice: the tokens taken;
--            reserve: the microseconds to wait; refund, cancel: the tokens given back, the smallest
--            number of all limits, which may be a fraction
--   at       the time of this state; in a reply, the present time
--   since    a number that changes when earlier takes can no longer be given back
--   ban      the end of the ban; 0 or past: no ban
--   and for each limit
--     a, b, c    bucket: a: the debt. b: the debt without tokens that were given back below other
--                debts. c: debt that a smaller burst has forgiven; it leaks after all other debt,
--                and counts again if the burst grows
--                others: a: the start of the window. b: tokens admitted in it. c: tokens of the
--                previous window (sliding)
--                The refund number of a limit is b for a bucket and a for others
--     kind, P, R, B    the policy of these numbers. Another policy converts them: used tokens stay
--                used, up to the new burst, and overdrafts are added. Fixed windows continue, and
--                so do sliding windows with the same P. Other limits become a debt, or a new window
--
-- A reservation is charged at the time at which its owner may act. A bucket that would be empty
-- before that time is charged from that time on. So the limit holds for the acts, whenever the
-- reservations were made.
--
-- If the clock steps back, time stands still for this key until the clock reaches the stored time.
-- For this reason a denial also writes the time.
--
-- Run twice: peek and ban change nothing more. reserve and cancel are remembered in KEYS[2] and
-- give the same reply; a reservation that was canceled before it was made is denied. take, slice,
-- penalty and refund count twice.

local call, pack, unpack = redis.call, struct.pack, struct.unpack
local BUCKET, SLIDING, ALIGNED, ALLOTMENT = 1, 2, 4, 5
-- MOST: 2^53 - 1 units of a debt. COUNTS: 2^52 tokens times P of a window
local MOST, COUNTS = 9007199254740991, 4503599627370496

local argv, value = ARGV, call('GET', KEYS[1])
local policy, now = argv[2], argv[5]
if now then
  now = tonumber(now)
else
  now = call('TIME')
  now = now[1] * 1000000 + now[2]
end
local last, at, since, ban = 0, now, now, 0

-- A fast path for the most common case: a take, one limit, nothing unusual. It halves the cost.
if #policy == 32 and (not value or #value == 88) and argv[1] == 'take' and argv[3] ~= '0' then
  local K, P, R, B = unpack('<dddd', policy)
  local a, b, c, k, p, r, q = 0, 0, 0, K, P, R, B
  if value then
    last, at, since, ban, a, b, c, k, p, r, q = unpack('<ddddddddddd', value)
  end
  local takes = #(argv[4] or '') == 8 and unpack('<d', argv[4])
  local same = k == K and p == P and r == R and q == B and a >= 0 and b >= 0 and c >= 0 and
    at >= 0 and at <= now and since >= 0 and since <= MOST and ban >= -MOST and last == 0 and
    at % 1 + since % 1 + ban % 1 + a % 1 + b % 1 + c % 1 == 0
  if same and K == BUCKET and c == 0 and a <= MOST and b < COUNTS and ban <= now then
    local leaked, cost = (now - at) * R, argv[3] * P
    a = leaked < a and a - leaked or 0
    if a + cost > B then
      return a
    end
    if takes then
      takes = math.min(takes, math.floor((B - a) / cost))
      cost = cost * takes
    end
    a, b = a + cost, (leaked < b and b - leaked or 0) + cost
    value = pack('<ddddddd', 0, now, since, ban, a, b, 0) .. policy
    call('SET', KEYS[1], value, 'PX', math.ceil(a / (R * 1000)))
    return takes and pack('<d', takes) .. string.sub(value, 9) or value
  end
  if same and K > BUCKET and K < ALLOTMENT and a <= now and ban <= MOST and
    b * P <= COUNTS and c * P <= COUNTS then
    local cost = argv[3] + 0
    if now >= a + P then
      if K == SLIDING and now < a + 2 * P then
        a, b, c = a + P, 0, b
      else
        a, b, c = 0, 0, 0
      end
    end
    if ban > now or b + cost > B or K == SLIDING and c * (P - now + a) > (B - b - cost) * P then
      return pack('<ddddddd', -1, now, since, ban, a, b, c)
    end
    if takes then
      local room = B - b - (K == SLIDING and math.ceil(c * (P - now + a) / P) or 0)
      takes = math.min(takes, math.floor(room / cost))
      cost = cost * takes
    end
    if b + c == 0 then
      a = K == ALIGNED and now - now % P or now
    end
    value = pack('<ddddddd', 0, now, since, ban, a, b + cost, c) .. policy
    call('SET', KEYS[1], value, 'PX', math.ceil(((K == SLIDING and 2 * P or P) - (now - a)) / 1000))
    return takes and pack('<d', takes) .. string.sub(value, 9) or value
  end
end

local op, cost = ARGV[3] == '0' and ARGV[1] == 'take' and 'peek' or ARGV[1], tonumber(ARGV[3])
local limits, stored = #policy / 32, value and (#value - 32) / 56 or 0
local function is_none(number, least, most) -- x % 1 of NaN and infinity is not 0
  return not (number % 1 == 0 and number >= least and number <= most)
end
if stored % 1 ~= 0 or stored < 0 or value and stored == 0 then
  return redis.error_reply('WRONGTYPE this key is not a limit')
end
if value then
  last, at, since, ban = unpack('<dddd', value)
end
if is_none(last, 0, MOST) or is_none(at, 0, MOST) or is_none(since, 0, MOST) or
    is_none(ban, -MOST, MOST) then
  return redis.error_reply('WRONGTYPE this key is not a limit')
end
local elapsed, changed, lapsed = now - at, stored ~= limits and stored ~= 0, false
if elapsed < 0 then
  ban, elapsed, changed = ban + elapsed, 0, true
end

-- Convert units of 1/p token to units of 1/P, rounded up: x * P / p, in two parts, the second by
-- long multiplication.
local function scaled(x, p, P)
  local rest, quotient, left = x % p, 0, 0
  local whole = (x - rest) / p * P
  for bit = 52, 0, -1 do
    quotient, left = quotient * 2, left * 2
    if left >= p then
      quotient, left = quotient + 1, left - p
    end
    if P >= 2 ^ bit then
      P, left = P - 2 ^ bit, left + rest
      if left >= p then
        quotient, left = quotient + 1, left - p
      end
    end
  end
  return whole + quotient + (left > 0 and 1 or 0)
end

-- Convert the numbers of a limit (k, p, q) to those of another limit (K, P, B).
local function converted(k, p, q, a, b, c, K, P, B)
  if k == BUCKET and K == BUCKET then
    local over = a > q and a - q or 0
    local debt, forgiven = scaled(a - over, p, P), scaled(c, p, P)
    local within = math.min(debt, B)
    local again = math.max(math.min(forgiven, B - q / p * P, B - within), 0)
    a = math.min(within + again + scaled(over, p, P), MOST)
    return a, a, math.min(debt - within + forgiven - again, MOST - a)
  end
  if k == SLIDING and K == SLIDING and p == P then
    return a, b, c
  end
  if k > SLIDING and K > SLIDING and now < a + P then
    return K == ALIGNED and now - now % P or a, math.min(b, math.floor(COUNTS / P)), 0
  end
  local used, most = b, q
  if k == BUCKET then
    used, most = math.ceil(a / p), q / p
  elseif k == SLIDING then
    used = b + math.ceil(c * (p - now + a) / p)
  elseif K > SLIDING then
    used = 0
  end
  local over = math.max(used - most, 0)
  if K == BUCKET then
    a = math.min((math.min(used - over, B / P) + over) * P, MOST)
    return a, a, 0
  end
  used = math.min(math.min(used - over, B) + over, math.floor(COUNTS / P))
  return K == ALIGNED and now - now % P or now, used, 0
end

-- Advance all limits to the present time, and compute the free room
local present_debts, free = '', math.huge
for i = 1, limits do
  local K, P, R, B = unpack('<dddd', policy, i * 32 - 31)
  local a, b, c, k, p, r, q = 0, 0, 0, K, P, R, B
  if i <= stored then
    a, b, c, k, p, r, q = unpack('<ddddddd', value, i * 56 - 23)
    local most = k == BUCKET and MOST or COUNTS / p
    if is_none(k, BUCKET, ALLOTMENT) or is_none(p, 1, COUNTS) or is_none(r, 0, COUNTS) or
        is_none(q, 1, COUNTS) or is_none(a, 0, MOST) or is_none(b, 0, most) or
        is_none(c, 0, most) then
      return redis.error_reply('WRONGTYPE this key is not a limit')
    end
  end
  if k == BUCKET then
    local leaked = elapsed * r
    c = math.max(c - math.max(leaked - a, 0), 0)
    a = leaked < a and a - leaked or 0
    b = leaked < b and b - leaked or 0
  else
    if a > now then
      a = k == ALIGNED and now - now % p or now
    end
    if now >= a + p then
      if k == SLIDING and now < a + 2 * p then
        a, b, c = a + p, 0, b
      else
        a, b, c, lapsed = 0, 0, 0, lapsed or k == ALLOTMENT and b > 0
      end
    end
  end
  if k ~= K or p ~= P or r ~= R or q ~= B then
    a, b, c = converted(k, p, q, a, b, c, K, P, B)
    changed = true
  end
  if K == BUCKET then
    free = math.min(free, math.floor((B - a) / P))
  elseif K == SLIDING then
    free = math.min(free, B - b - math.ceil(c * (P - now + a) / P))
  else
    free = math.min(free, B - b)
  end
  present_debts = present_debts .. pack('<ddddddd', a, b, c, K, P, R, B)
end
if changed or lapsed then
  since, last = since + 1, 0
end

-- Decide: charge the cost, or give it back
local admitted, takes = now >= ban and cost <= free, 1
local answer, charge, refund, wait = admitted and 0 or -1, false, false, 0
local write = changed and value and op ~= 'peek'
local record, act, remember, taken, valid, thirds
if op == 'reserve' or op == 'cancel' then
  record = call('GET', KEYS[2])
end
if record then
  local good = #record >= 40 and #record <= 64 and #record % 8 == 0
  for i = 1, good and #record or 0, 8 do
    good = good and not is_none(unpack('<d', record, i), 0, MOST)
  end
  if #record == 8 then -- canceled: the tokens given back may be a fraction
    good = unpack('<d', record) <= -1 and unpack('<d', record) >= -MOST
  end
  if not good then
    return redis.error_reply('WRONGTYPE this key is not a reservation')
  end
end
if op == 'take' then
  charge = admitted
  if charge and #(ARGV[4] or '') == 8 then
    takes = math.min(unpack('<d', ARGV[4]), math.floor(free / cost))
    answer, cost = takes, cost * takes
  end
elseif op == 'slice' then
  cost = math.min(cost, free)
  charge = now >= ban and cost >= unpack('<d', ARGV[4])
  answer = charge and cost or -1
elseif op == 'penalty' then
  answer, charge = 0, true
elseif op == 'ban' then
  ban, answer, write = now + unpack('<d', ARGV[4]), 0, true
elseif op == 'refund' then
  taken, valid = unpack('<dd', ARGV[4])
  refund, thirds = true, string.sub(ARGV[4], 17)
elseif op == 'reserve' and record then
  act = unpack('<d', record)
  answer = act < 0 and -1 or math.max(act - now, 0)
elseif op == 'reserve' then
  local longest
  longest, remember = unpack('<dd', ARGV[4])
  for i = 1, limits do
    local a, b, c, K, P, R, B = unpack('<ddddddd', present_debts, i * 56 - 55)
    wait = math.max(wait, math.ceil((a + cost * P - B) / R))
  end
  charge = now >= ban and wait <= longest
  for i = 1, limits do
    local a, b, c, K, P, R = unpack('<dddddd', present_debts, i * 56 - 55)
    charge = charge and math.max(a, wait * R) + cost * P <= MOST
  end
  act, answer = now + wait, charge and wait or -1
elseif op == 'cancel' then
  answer, remember = 0, unpack('<d', ARGV[4])
  if record and #record == 8 then
    answer = -1 - unpack('<d', record)
  elseif record then
    act, taken, valid, cost = unpack('<dddd', record)
    refund, thirds = true, string.sub(record, 33)
  end
end

local debts, marks, left, waiting = '', '', ban - now, math.max(last - now, 0)
if refund then
  refund = valid == since and taken <= now and #thirds == limits * 8
  answer = refund and cost or 0
end
for i = 1, limits do
  local a, b, c, K, P, R, B = unpack('<ddddddd', present_debts, i * 56 - 55)
  if charge then
    if K == BUCKET then
      local more = math.max(wait * R - a, 0) + cost * P
      if b > MOST - more then -- each take that passes it counts
        since = since + takes - math.floor((MOST - b) / (more / takes))
      end
      a, b = math.min(a + more, MOST), math.min(b + more, MOST)
      c = math.min(c, MOST - a)
    else
      if b + c == 0 or K == ALLOTMENT then
        a = K == ALIGNED and now - now % P or now
      end
      b = math.min(b + cost, math.floor(COUNTS / P))
    end
  elseif refund then
    local third, given = unpack('<d', thirds, i * 8 - 7), 0
    if K == BUCKET then
      local later = math.max(b - third + (now - taken) * R, 0)
      local built = waiting > 0 and later or 0
      given = math.max(math.min(cost * P - built, a - later - (later > 0 and waiting * R or 0)), 0)
      a, b = a - given, later == 0 and b - given or b
      given = given / P
    elseif K == SLIDING and third + P == a then
      given = math.min(cost, c)
      c = c - given
    elseif K == ALLOTMENT or third == a then
      given = math.min(cost, b)
      b = b - given
    end
    answer = math.min(answer, given)
  end
  if K == BUCKET then
    left = math.max(left, math.ceil((a + c) / R))
  elseif b + c == 0 then
    a = 0
  else
    left = math.max(left, (K == SLIDING and b > 0 and 2 * P or P) - (now - a))
  end
  debts, marks = debts .. pack('<ddddddd', a, b, c, K, P, R, B), marks .. pack('<d', b)
end

-- Write the value and reply
if op == 'cancel' then
  answer = -1 - (-1 - answer) -- rounded as the stored value is
end
local reply = pack('<dddd', answer, now, since, ban) .. debts
if charge or refund or write then
  if left > 0 then
    last = math.max(last, op == 'reserve' and charge and act or 0)
    last = last > now and last or 0
    local text = answer == last and reply or pack('<dddd', last, now, since, ban) .. debts
    call('SET', KEYS[1], text, 'PX', string.format('%.0f', math.ceil(left / 1000)))
  elseif value then
    call('DEL', KEYS[1])
  end
end
if op == 'reserve' and charge then
  call('SET', KEYS[2], pack('<dddd', act, now, since, cost) .. marks, 'PX',
    string.format('%.0f', math.ceil(math.max(left, remember) / 1000)))
elseif op == 'cancel' then
  call('SET', KEYS[2], pack('<d', -1 - answer), 'PX',
    string.format('%.0f', math.ceil(remember / 1000)))
end
return reply
