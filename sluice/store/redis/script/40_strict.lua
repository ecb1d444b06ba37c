-- Strict sub-window counter. limit: units, most units, length of a sub-window (us), how many.
-- State: "number count count ...", the newest first, without the zeros at its end: what still counts,
-- and what is ahead of now, where something is leased.
if letter == 's' then
  -- Number of the newest sub-window held, the counts held, their sum.
  local function parse(limit, text)
    if not text then return 0, {}, 0 end
    local tail = match(text, '^%d[%d ]*$', limit.at)
    if not tail then damaged() end
    local newest, held, all = nil, {}, 0
    for word in string.gmatch(tail, '%d+') do
      if newest == nil then
        newest = whole(word)
      else
        held[#held + 1] = whole(word)
        all = all + held[#held]
      end
    end
    if #held > 2 * limit[4] + 1 or all >= MOST then damaged() end
    return newest, held, all
  end

  local function kept(limit, number, counts)
    local last, newest = #counts, 1
    while last > 1 and counts[last] == 0 do last = last - 1 end
    while newest < last and counts[newest] == 0 do newest = newest + 1 end
    local words = {}
    for i = 1, last do words[i] = text_of(counts[i]) end
    return limit.sig .. text_of(number) .. ' ' .. table.concat(words, ' '),
           (number - newest + limit[4] + 2) * limit[3] - now
  end

  local self = {read = read_text, write = write_text}

  -- `more`: negative: a lease of so many microseconds, charged as of its end.
  function self.decide(limit, text, cost, _, more, how)
    local newest, held, all = parse(limit, text)
    -- The sub-window in which a charge counts. A clock that steps back lets nothing leave.
    local number = floor((now - more) / limit[3])
    if all > 0 then number = max(number, newest) end
    local size = min(number - floor(now / limit[3]), limit[4]) + limit[4] + 1
    local counts, sum = {}, 0
    for i = 1, size do counts[i] = 0 end
    for i = 1, all > 0 and #held or 0 do
      local age = number - newest + i
      if age <= size then
        counts[age] = held[i]
        sum = sum + held[i]
      end
    end
    local room = fits(limit[1], sum, cost)
    if how == 0 or cost == 0 or (how == 1 and not room) then return room, nil, text end
    local units = units_of(room, sum, cost, limit[2])
    if units == 0 then return room, nil, text end
    counts[1] = counts[1] + units
    local after, life = kept(limit, number, counts)
    return room, after, text, life
  end

  -- Units, sub-window.
  function self.undo(_, limit, text, first)
    local newest, held, all = parse(limit, text)
    local window = tonumber(ARGV[first + 1])
    local at = newest - window + 1
    if all == 0 or window < floor(now / limit[3]) - limit[4] then return nil end
    if at < 1 or at > #held or held[at] == 0 then return nil end
    held[at] = max(held[at] - ARGV[first], 0)
    return kept(limit, newest, held)
  end
  return self
end
