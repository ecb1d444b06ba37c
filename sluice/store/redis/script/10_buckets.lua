-- Token bucket and leaky bucket: an instant in microseconds, and ticks below.
-- limit: capacity or longest delay (us, ticks), ticks in a us, most debt (us, ticks).
-- State: "us", or "us ticks undone-us undone-ticks", or with the latest end of a lease behind that.
if letter == 't' or letter == 'l' then
  local is_queue = letter == 'l'
  local self = {read = read_text, write = write_text}

  local function less(a, a_ticks, b, b_ticks) return a < b or (a == b and a_ticks < b_ticks) end

  local function parse(limit, text)
    if not text then return 0, 0, 0, 0, 0 end
    local plain = match(text, '^%d+$', limit.at)
    if plain then return whole(plain), 0, 0, 0, 0 end
    local us, ticks, undone, undone_ticks = match(text, '^(%d+) (%d+) (%d+) (%d+)$', limit.at)
    local leased = '0'
    if not us then
      us, ticks, undone, undone_ticks, leased =
        match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$', limit.at)
    end
    if not us then damaged() end
    us, undone, leased = whole(us), whole(undone), whole(leased)
    ticks, undone_ticks = tonumber(ticks), tonumber(undone_ticks)
    if ticks >= limit[3] or undone_ticks >= limit[3] or leased > us then damaged() end
    return us, ticks, undone, undone_ticks, leased
  end

  -- The text, and how long it lives. A receipt of a charge on this key counts what was undone since.
  -- It must not meet a key that began anew, so a key on which something was undone lives as long as
  -- it would have without that.
  local function kept(limit, us, ticks, undone, undone_ticks, leased)
    local life = us + 1 - now
    if leased <= now then
      if ticks + undone + undone_ticks == 0 then return limit.sig .. text_of(us), life end
      leased = ''
    else
      leased = ' ' .. text_of(leased)
    end
    return format('%s%.0f %.0f %.0f %.0f%s', limit.sig, us, ticks, undone, undone_ticks, leased),
           undone + undone_ticks > 0 and -life or life
  end

  -- `more`: 1: it can never pass. Negative: a lease of so many microseconds, charged as of its end.
  function self.decide(limit, text, cost, cost_ticks, more, how)
    local us, ticks, undone, undone_ticks, leased = parse(limit, text)
    if us < now then us, ticks = now, 0 end
    if cost + cost_ticks == 0 then return true, nil, text end
    if more < 0 then
      local ends = now - more
      if leased < ends then leased = ends end
      if us < ends then us, ticks = ends, 0 end
    end
    local after, after_ticks = us + cost, ticks + cost_ticks
    if after_ticks >= limit[3] then after, after_ticks = after + 1, after_ticks - limit[3] end
    local room
    if is_queue then
      room = not less(now + limit[1], limit[2], us, ticks)
    else
      room = not less(now + limit[1], limit[2], after, after_ticks)
    end
    room = room and more < 1
    if how == 0 or (how == 1 and not room) then return room, nil, text end
    if not room then
      local most, most_ticks = now + limit[4], limit[5]
      if less(most, most_ticks, after, after_ticks) then after, after_ticks = most, most_ticks end
      if not less(us, ticks, after, after_ticks) then return room, nil, text end
    end
    local next_text, life = kept(limit, after, after_ticks, undone, undone_ticks, leased)
    return room, next_text, text, life
  end

  if MODE ~= 'u' then return self end

  if is_queue then
    -- End of the queue right after the charge, and where it would end without what goes back.
    function self.undo(_, limit, text, first)
      local us, ticks, undone, undone_ticks = parse(limit, text)
      local till, till_ticks = tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
      if not less(now, 0, us, ticks) then return nil end
      if us ~= tonumber(ARGV[first]) or ticks ~= tonumber(ARGV[first + 1]) then return nil end
      if till < now then till, till_ticks = now, 0 end
      if not less(till, till_ticks, us, ticks) then return nil end
      return kept(limit, till, till_ticks, undone, undone_ticks, 0)
    end
    return self
  end

  local function minus(a, a_ticks, b, b_ticks, in_us)
    local us, ticks = a - b, a_ticks - b_ticks
    if ticks < 0 then return us - 1, ticks + in_us end
    return us, ticks
  end

  -- What was undone is counted modulo 2^50 us. Only differences matter, and one that is wrong after
  -- the key began anew is nearly that large, which gives back less.
  local WRAP = 1125899906842624

  -- What the units are worth, TAT before the charge, when it was, undone before. As of the latest end
  -- of a lease: until then what was leased may be spent.
  function self.undo(_, limit, text, first)
    local arg = {}
    for i = 1, 8 do arg[i] = tonumber(ARGV[first + i - 1]) end
    local in_us = limit[3]
    local us, ticks, undone, undone_ticks, leased = parse(limit, text)
    local as_of = math.max(now, leased)
    if not less(as_of, 0, us, ticks) then return nil end
    local moved, moved_ticks = minus(undone, undone_ticks, arg[7], arg[8], in_us)
    if moved < 0 then moved = moved + WRAP end
    local origin, origin_ticks = minus(arg[3], arg[4], moved, moved_ticks, in_us)
    if less(origin, origin_ticks, arg[5], arg[6]) then origin, origin_ticks = arg[5], arg[6] end
    local back, back_ticks = arg[1], arg[2]
    if less(origin, origin_ticks, as_of, 0) then
      local paid, paid_ticks = minus(as_of, 0, origin, origin_ticks, in_us)
      back, back_ticks = minus(back, back_ticks, paid, paid_ticks, in_us)
    end
    local owed, owed_ticks = minus(us, ticks, as_of, 0, in_us)
    if less(owed, owed_ticks, back, back_ticks) then back, back_ticks = owed, owed_ticks end
    if not less(0, 0, back, back_ticks) then return nil end
    us, ticks = minus(us, ticks, back, back_ticks, in_us)
    undone, undone_ticks = undone + back, undone_ticks + back_ticks
    if undone_ticks >= in_us then undone, undone_ticks = undone + 1, undone_ticks - in_us end
    if undone >= WRAP then undone = undone - WRAP end
    return kept(limit, us, ticks, undone, undone_ticks, leased)
  end
  return self
end
