-- Tests whether items are in a set.
-- KEYS[1]: the set. ARGV: the items.
-- Reply: a digit for each item: 1 member, 0 not.
-- Run twice: the same; it writes nothing.
local answers = {}
for i = 1, #ARGV do
  answers[i] = redis.call('SISMEMBER', KEYS[1], ARGV[i])
end
return table.concat(answers)
