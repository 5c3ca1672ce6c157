-- Comparison of numbers of 64 bits, which are text.

-- true if a <= b, for two numbers without sign and with the same number of digits.
local function digits_at_most(a, b)
  local high_a, high_b = tonumber(string.sub(a, 1, -10)) or 0, tonumber(string.sub(b, 1, -10)) or 0
  if high_a ~= high_b then
    return high_a < high_b
  end
  return tonumber(string.sub(a, -9)) <= tonumber(string.sub(b, -9))
end

-- true if a <= b.
local function at_most(a, b)
  local minus_a, minus_b = string.sub(a, 1, 1) == '-', string.sub(b, 1, 1) == '-'
  if minus_a ~= minus_b then
    return minus_a
  end
  if minus_a then
    a, b = string.sub(b, 2), string.sub(a, 2)
  end
  if #a ~= #b then
    return #a < #b
  end
  return digits_at_most(a, b)
end
