-- Concurrency. limit: slots, most slots, time to live (us; 0: none), how long a slot lives then.
-- A sorted set by the slots' ends: "id", or "id:units" where it has not one; and first, with -1,
-- "1n sum", the units of all that are in it.
if letter == 'n' then
  local self = {}

  local function units_in(word)
    local units = match(word, '^%x+:?(%d*)$')
    if not units then damaged() end
    return units == '' and 1 or tonumber(units)
  end

  local function member_of(id, units) return units == 1 and id or id .. ':' .. text_of(units) end

  function self.read(key)
    local head = call('ZRANGE', key, 0, 0)
    if #head == 0 then return false end
    local sum = match(head[1], '^1n (%d+)$')
    if not sum then damaged() end
    local slots = {key = key, head = head[1], live = whole(sum), added = {}, more = 0}
    local over = call('ZRANGEBYSCORE', key, 0, text_of(now))
    slots.over = #over
    for _, word in ipairs(over) do slots.live = slots.live - units_in(word) end
    return slots
  end

  -- Calls visit(end, units) for the slots that are not over, in the order of their ends, until it
  -- says true.
  local function walk(key, visit)
    local from = 0
    while true do
      local words = call('ZRANGEBYSCORE', key, '(' .. text_of(now), '+inf', 'WITHSCORES', 'LIMIT',
                         from, 64)
      for i = 1, #words, 2 do
        if visit(tonumber(words[i + 1]), units_in(words[i])) then return end
      end
      if #words < 128 then return end
      from = from + 64
    end
  end

  -- When so many slots have ended, those that end first, that they are `need` units; among them
  -- `added` units that are not in the set yet and end at `end_of_added`.
  local function end_of(slots, need, added, end_of_added)
    local units, found = 0, nil
    local function reach(more, ends)
      units = units + more
      if units >= need then found = ends end
      return found
    end
    if slots and slots.key then  -- else all of them are new
      walk(slots.key, function(ends, more)
        if added > 0 and ends > end_of_added then
          if reach(added, end_of_added) then return true end
          added = 0
        end
        return reach(more, ends)
      end)
    end
    if not found then reach(added, end_of_added) end
    return found
  end

  function self.decide(limit, slots, cost, _, id, how)
    local base = slots and slots.live + slots.more or 0
    local room = fits(limit[1], base, cost)
    local ends = now + (limit[3] > 0 and limit[3] or limit[4])
    local units = 0
    if how == 2 or (how == 1 and room) then units = units_of(room, base, cost, limit[2]) end
    local free = 0
    if not room and cost <= limit[1] and limit[3] > 0 then
      free = end_of(slots, base + units - (limit[1] - cost), (slots and slots.more or 0) + units,
                    ends)
    end
    local told = format('%.0f %.0f', base, free)
    if units == 0 then return room, nil, told end
    local after = {live = 0, over = 0, more = units, added = {}}
    if slots then
      after.head, after.live, after.over, after.key = slots.head, slots.live, slots.over, slots.key
      after.more = slots.more + units
      for i, word in ipairs(slots.added) do after.added[i] = word end
    end
    after.added[#after.added + 1] = text_of(ends)
    after.added[#after.added + 1] = member_of(id, units)
    return room, after, told
  end

  -- A key lives as long as its last slot.
  local function set_life(key)
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    call('PEXPIRE', key, milliseconds(max(last[2] - now, 0)))
  end

  local function set_sum(key, head, sum)
    if head then call('ZREM', key, head) end
    call('ZADD', key, -1, '1n ' .. text_of(sum))
  end

  function self.write(key, _, slots)
    if slots.over > 0 then call('ZREMRANGEBYSCORE', key, 0, text_of(now)) end
    set_sum(key, slots.head, slots.live + slots.more)
    call('ZADD', key, unpack(slots.added))
    set_life(key)
  end

  -- Slot, units: or fewer, if that was a forced charge whose answer was lost. One that is over is as
  -- good as given back.
  function self.undo(key, _, slots, first)
    local id, units = ARGV[first], tonumber(ARGV[first + 1])
    local word = member_of(id, units)
    local ends = call('ZSCORE', key, word)
    local fewest = max(units - 100, 1)
    while not ends and units > fewest do
      units = units - 1
      word = member_of(id, units)
      ends = call('ZSCORE', key, word)
    end
    if not ends or tonumber(ends) <= now then return nil end
    call('ZREM', key, word)
    if slots.over > 0 then call('ZREMRANGEBYSCORE', key, 0, text_of(now)) end
    if slots.live == units then
      call('DEL', key)
    else
      set_sum(key, slots.head, slots.live - units)
    end
    return true
  end

  -- Holds the slot for `life` more. 1: it was held. 0: it was over, or the server had lost it, while
  -- its holder could not be heard; who holds it runs all the same, so it is taken again whatever the
  -- room.
  function self.renew(key, id, units, life)
    local slots = self.read(key)
    local word = member_of(id, units)
    local ends = slots and call('ZSCORE', key, word)
    local held = ends and tonumber(ends) > now
    if not held then
      if slots and slots.over > 0 then call('ZREMRANGEBYSCORE', key, 0, text_of(now)) end
      set_sum(key, slots and slots.head, (slots and slots.live or 0) + units)
    end
    call('ZADD', key, text_of(now + life), word)
    set_life(key)
    return held and 1 or 0
  end
  return self
end
