-- Sliding window counter. limit: units, most units, window, offset of the edges (us).
-- State: "number previous current".
if letter == 'c' then
  local LIMB = 67108864  -- 2^26

  -- a * b = high * 2^52 + middle * 2^26 + low, for a and b below 2^52: no product of two limbs
  -- exceeds 2^52, and no sum of them 2^53.
  local function product(a, b)
    local a1, b1 = floor(a / LIMB), floor(b / LIMB)
    local a0, b0 = a - a1 * LIMB, b - b1 * LIMB
    local low = a0 * b0
    local carry = floor(low / LIMB)
    local middle = a1 * b0 + a0 * b1 + carry
    local over = floor(middle / LIMB)
    return a1 * b1 + over, middle - over * LIMB, low - carry * LIMB
  end

  -- Whether a * b <= c * d.
  local function at_most(a, b, c, d)
    local left, right = a * b, c * d
    -- A product that is not exact is at least 2^53, also after rounding.
    if left < MOST and right < MOST then return left <= right end
    local high, middle, low = product(a, b)
    local high2, middle2, low2 = product(c, d)
    if high ~= high2 then return high < high2 end
    if middle ~= middle2 then return middle < middle2 end
    return low <= low2
  end

  -- ceil(previous * left / window): a guess in doubles, then moved until it is exact.
  local function weight(previous, left, window)
    local guess = min(floor(previous * left / window), previous)
    while not at_most(previous, left, guess, window) do guess = guess + 1 end
    while guess > 0 and at_most(previous, left, guess - 1, window) do guess = guess - 1 end
    return guess
  end

  local function parse(limit, text)
    if not text then return 0, 0, 0 end
    local number, previous, current = match(text, '^(%d+) (%d+) (%d+)$', limit.at)
    if not number then damaged() end
    return whole(number), whole(previous), whole(current)
  end

  -- Number, previous, current as they are now; what is left of the previous window's weight.
  local function rolled(limit, text, phase)
    local state, previous, current = parse(limit, text)
    local window, at = limit[3], wall - limit[4] - phase
    local number = floor(at / window)
    local left = window - (at - number * window)
    if previous + current == 0 then return number, 0, 0, left end
    if state == number then return number, previous, current, left end
    -- The clock stepped back over an edge: as at the newer window's first instant.
    if state == number + 1 then return state, previous, current, window end
    if state == number - 1 then return number, current, 0, left end
    return number, 0, 0, left
  end

  local function kept(limit, number, previous, current, phase)
    return limit.sig .. format('%.0f %.0f %.0f', number, previous, current),
           (number + 2) * limit[3] + limit[4] + phase - wall
  end

  local self = {read = read_text, write = write_text}

  function self.decide(limit, text, cost, _, phase, how)
    local number, previous, current, left = rolled(limit, text, phase)
    local free = max(limit[1] - current, 0)
    local room = cost == 0 or (cost <= limit[1] and cost <= free and
                               at_most(previous, left, free - cost, limit[3]))
    if how == 0 or cost == 0 or (how == 1 and not room) then return room, nil, text end
    local units = cost
    if not room then
      units = units_of(false, weight(previous, left, limit[3]) + current, cost, limit[2])
      if units == 0 then return room, nil, text end
    end
    local after, life = kept(limit, number, previous, current + units, phase)
    return room, after, text, life
  end

  -- Units, window, phase.
  function self.undo(_, limit, text, first)
    if not text then return nil end
    local units, window, phase = tonumber(ARGV[first]), tonumber(ARGV[first + 1]),
                                 tonumber(ARGV[first + 2])
    local number, previous, current = rolled(limit, text, phase)
    if window == number then
      return kept(limit, number, previous, max(current - units, 0), phase)
    elseif window == number - 1 then
      return kept(limit, number, max(previous - units, 0), current, phase)
    end
    return nil
  end
  return self
end
