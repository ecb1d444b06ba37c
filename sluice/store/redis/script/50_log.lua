-- Sliding window log. limit: units, most units, how long an event counts, tick of its time (us).
-- A list: first "latest sum" after the numbers in short, then the events, the oldest first, each
-- "time", or "time:units" where it has not one unit. `sum` is of all that are in the list.
if letter == 'list' then
  local function event_of(word)
    local at, units = match(word, '^(%d+):?(%d*)$')
    if not at then damaged() end
    return tonumber(at), units == '' and 1 or tonumber(units)
  end

  -- Calls visit(time, units, index) for the events from `index` on, until it says true. `chunk` may
  -- hold the first ones, as the list does from 0 on.
  local function walk(key, index, chunk, visit)
    local first = 0
    while true do
      local word = chunk[index - first + 1]
      if not word then
        if #chunk < 64 then return end
        first, chunk = index, call('LRANGE', key, index, index + 63)
        word = chunk[1]
        if not word then return end
      end
      local at, units = event_of(word)
      if visit(at, units, index) then return end
      index = index + 1
    end
  end

  -- The log in the list `key`, whose first 64 elements are `chunk`; `length` says how long an event
  -- counts.
  local function log_of(key, chunk, header, length)
    local latest, sum = match(chunk[1], '^(%d+) (%d+)$', header)
    if not latest then damaged() end
    local log = {key = key, chunk = chunk, latest = whole(latest), sum = whole(sum),
                 live = 0, first = 1, newest = 0, any = #chunk > 1, exists = true, added = {}, more = 0}
    log.over = log.latest + length <= now  -- then the list is not walked through
    if log.over or not log.any then
      log.any = false
      return log
    end
    log.live = log.sum
    walk(key, 1, chunk, function(at, units, index)
      if at + length > now then return true end
      log.live, log.first = log.live - units, index + 1
      return false
    end)
    if log.live > 0 then log.newest = event_of(call('LINDEX', key, -1)) end
    return log
  end

  local self = {event_of = event_of, walk = walk, log_of = log_of}

  -- What a list says of itself, whatever its numbers, "header;units that still count", and the header.
  function self.image(key)
    local chunk = call('LRANGE', key, 0, 63)
    local length = match(chunk[1], '^1g(%d+),%d+ %d+ %d+$')
    if not length then return chunk[1] .. ';0', chunk[1] end
    local header = #match(chunk[1], '^1g%d+,%d+ ') + 1
    return chunk[1] .. ';' .. text_of(log_of(key, chunk, header, whole(length)).live), chunk[1]
  end
  return self
end

if letter == 'g' then
  local list = algorithm('list')
  local event_of, walk, log_of = list.event_of, list.walk, list.log_of
  local self = {}

  function self.read(key, limit, conversion)
    local chunk = redis.pcall('LRANGE', key, 0, 63)
    local there
    if chunk.err then
      if not match(chunk.err, 'WRONGTYPE') then error(chunk.err, 0) end
      there = call('GET', key)
    elseif #chunk == 0 then
      return false
    else
      there = chunk[1]
    end
    if conversion and there == conversion[1] then
      -- Instead of what is there nothing, or what is owed as of one moment.
      local log = {key = key, latest = 0, live = 0, newest = 0, first = 1, any = false,
                   exists = true, over = true, added = {}, more = 0}
      if conversion[2] ~= '' then
        log.latest, log.more = event_of(conversion[2])
        log.any, log.added = true, {conversion[2]}
      end
      return log
    end
    if chunk.err then return nil, there end
    if sub(there, 1, limit.at - 1) ~= limit.sig then return nil, (list.image(key)) end
    return log_of(key, chunk, limit.at, limit[3])
  end

  -- The time at which so many of the oldest events were charged that they are `need` units.
  local function time_of(log, need)
    local found, units = log.latest, 0
    if need > log.live then return found end
    walk(log.key, log.first, log.chunk, function(at, more)
      units, found = units + more, at
      return units >= need
    end)
    return found
  end

  -- `more`: negative: a lease of so many microseconds, dated at its end.
  function self.decide(limit, log, cost, _, more, how)
    local base, tick = log and log.live + log.more or 0, limit[4]
    local at = floor((now - more + tick - 1) / tick) * tick
    if log and log.any then at = max(at, log.latest) end
    local room = fits(limit[1], base, cost)
    local units = 0
    if how == 2 or (how == 1 and room) then units = units_of(room, base, cost, limit[2]) end
    local free = 0
    if not room and cost <= limit[1] then
      local need = base + units - (limit[1] - cost)
      free = need <= base and time_of(log, need) or at
    end
    -- What is left of an event only tells when the next one may be dated.
    local newest = log and (log.more > 0 and log.latest or log.newest) or 0
    local told = format('%.0f %.0f %.0f %.0f', base, newest, free, at)
    if units == 0 then return room, nil, told end
    local after = {latest = at, any = true, more = units, added = {}}
    if log then
      for name, value in pairs(log) do if after[name] == nil then after[name] = value end end
      after.more = log.more + units
      for i, word in ipairs(log.added) do after.added[i] = word end
    else
      after.live, after.newest, after.first, after.over = 0, 0, 1, true
    end
    after.added[#after.added + 1] = units == 1 and text_of(at) or format('%.0f:%.0f', at, units)
    return room, after, told, at + limit[3] - now
  end

  function self.write(key, limit, log, life)
    local header = limit.sig .. format('%.0f %.0f', log.latest, log.live + log.more)
    if log.over or not log.chunk then
      if log.exists then
        -- Where a cluster moves the slot nothing can be put under a key that is gone. That fails
        -- here, by a key that never was, while the state is still there.
        call('PTTL', key .. '~')
        call('DEL', key)
      end
      call('RPUSH', key, header, unpack(log.added))
    else
      if log.first > 1 then
        call('LTRIM', key, log.first, -1)
        call('LPUSH', key, header)
      else
        call('LSET', key, 0, header)
      end
      call('RPUSH', key, unpack(log.added))
    end
    call('PEXPIRE', key, milliseconds(life))
  end

  -- Units, time. Events of one time leave together: any of them will do. They are looked for from
  -- the newest on. Nothing is changed before all is read.
  function self.undo(key, limit, log, first)
    local left, time = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
    if not log or not log.any or time + limit[3] <= now then return nil end
    local taken, last, changes = 0, -1, {}
    while last do
      local chunk = call('LRANGE', key, last - 63, last)
      for i = #chunk, 1, -1 do
        local at, units = 0, 0
        if sub(chunk[i], 1, 2) ~= '1g' then at, units = event_of(chunk[i]) end
        if at < time or taken == left then
          chunk = {}
          break
        elseif at == time then
          local less = min(units, left - taken)
          taken = taken + less
          changes[#changes + 1] = last - (#chunk - i)
          changes[#changes + 1] = units == less and 'x' or format('%.0f:%.0f', at, units - less)
        end
      end
      last = #chunk == 64 and last - 64 or nil
    end
    if taken == 0 then return nil end
    for i = 1, #changes, 2 do call('LSET', key, changes[i], changes[i + 1]) end
    call('LREM', key, 0, 'x')
    call('LSET', key, 0, limit.sig .. format('%.0f %.0f', log.latest, log.sum - taken))
    return true
  end
  return self
end
