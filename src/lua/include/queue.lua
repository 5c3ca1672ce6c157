-- A queue on the server, of fair locks and semaphores. The script defines before it: queue, a key:
-- a zset of tickets by number; places, a key: a zset of tickets by the expiry of their places (TIME
-- in ms); now, TIME in ms. A ticket's number is one more than the largest in the queue: the order
-- is that of arrival at this server, and of no clock.

local function leave(ticket)
  redis.call('ZREM', queue, ticket)
  redis.call('ZREM', places, ticket)
end

-- The keys live for as long as there is a place.
local function prolong(ms)
  for _, key in ipairs({queue, places}) do
    if redis.call('PTTL', key) < tonumber(ms) then
      redis.call('PEXPIRE', key, ms)
    end
  end
end

-- Keeps the place of a ticket for ms. number: of a new ticket.
local function keep(ticket, ms, number)
  prolong(ms) -- first: if that is refused, no key without a ttl is left
  if number then
    redis.call('ZADD', queue, string.format('%.0f', number), ticket)
  end
  redis.call('ZADD', places, string.format('%.0f', now + ms), ticket)
  prolong(ms)
end

-- Removes tickets without a place from the front of the queue, at most 128. Returns the first
-- ticket; the time for which it keeps its place, at least 1; and whether it removed any.
local function first_in_queue()
  for removed = 0, 128 do
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    local left = first and tonumber(redis.call('ZSCORE', places, first) or now) - now
    if not first or left > 0 or removed == 128 then
      return first, left and math.max(left, 1), removed > 0
    end
    leave(first)
  end
end

-- Adds a new ticket at the end of the queue. last: number of the last ticket; nil: not known.
-- Returns nil, or the reply that ends the script: -3: the queue is full.
local function join(ticket, ms, last)
  if redis.call('ZCARD', queue) >= 100000 then
    for _, dead in ipairs(redis.call('ZRANGEBYSCORE', places, '-inf', now, 'LIMIT', 0, 128)) do
      leave(dead)
    end
    if redis.call('ZCARD', queue) >= 100000 then
      return -3
    end
  end
  last = last or redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2] or '0'
  if not whole(last, -9007199254740991) then
    return foreign('a place in the queue')
  end
  redis.call('ZADD', queue, 'XX', 0, ticket) -- changes nothing; refused if the memory is full
  keep(ticket, ms, tonumber(last) + 1)
end
