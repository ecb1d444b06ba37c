-- Fixed windows. limit: units, most units, window, offset of the edges (us).
-- w, by the clock: "number used".  f, from the first hit: "start used".  q, calendar (limit: units,
-- most units, four edges in seconds, the time between the middle ones): "start end used".
if letter == 'w' or letter == 'f' or letter == 'q' then
  local function parse_window(limit, text)
    if not text then return 0, 0 end
    local window, used = match(text, '^(%d+) (%d+)$', limit.at)
    if not window then damaged() end
    return whole(window), whole(used)
  end

  -- `current(limit, text, more)` -> prefix of the text, used, end of the window (us of `clock_now`)
  local function counting(clock_now, current)
    local self = {read = read_text, write = write_text}

    function self.decide(limit, text, cost, _, more, how)
      local prefix, used, ends = current(limit, text, more)
      local room = fits(limit[1], used, cost)
      if how == 0 or cost == 0 or (how == 1 and not room) then return room, nil, text end
      local units = units_of(room, used, cost, limit[2])
      if units == 0 then return room, nil, text end
      return room, limit.sig .. prefix .. text_of(used + units), text, ends - clock_now
    end

    -- Units, window, more. Only while that window is the one that counts.
    function self.undo(_, limit, text, first)
      if not text then return nil end
      local prefix, used, ends, window = current(limit, text, tonumber(ARGV[first + 2]))
      if used == 0 or window ~= tonumber(ARGV[first + 1]) then return nil end
      local left = max(used - ARGV[first], 0)
      return limit.sig .. prefix .. text_of(left), ends - clock_now
    end
    return self
  end

  if letter == 'w' then
    return counting(wall, function(limit, text, phase)
      local window, used = parse_window(limit, text)
      local offset = limit[4] + phase
      local number = floor((wall - offset) / limit[3])
      local ends = (number + 1) * limit[3] + offset
      -- One ahead is kept: the clock stepped back over an edge. Further ahead is damage.
      if used > 0 and window == number + 1 then
        ends, number = ends + limit[3], window
      elseif window ~= number then
        used = 0
      end
      return text_of(number) .. ' ', used, ends, number
    end)
  end

  if letter == 'f' then
    return counting(now, function(limit, text)
      local start, used = parse_window(limit, text)
      local window = limit[3]
      if used == 0 or now - start >= window or start - now > window then start, used = now, 0 end
      return text_of(start) .. ' ', used, start + window, start
    end)
  end

  if letter == 'q' then
    return counting(wall, function(limit, text)
      local start, ends, used = 0, 0, 0
      if text then
        local from, to, units = match(text, '^(%d+) (%d+) (%d+)$', limit.at)
        if not from then damaged() end
        start, ends, used = whole(from), whole(to), whole(units)
      end
      if used == 0 or seconds < start or seconds >= ends then
        local edge = 3
        while edge < 6 and seconds >= limit[edge + 1] do edge = edge + 1 end
        if seconds < limit[3] or edge == 6 then error(BOUNDARIES) end
        -- Ahead of now only the next period is kept.
        if used == 0 or ends <= seconds or start ~= limit[edge + 1] or ends <= start then
          start, ends, used = limit[edge], limit[edge + 1], 0
        end
      end
      return format('%.0f %.0f ', start, ends), used, ends * 1000000, start
    end)
  end
end
