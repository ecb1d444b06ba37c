-- What the algorithms share that count units up to a limit.
local min, max = math.min, math.max

-- Whether `cost` more units fit beside `used`.
local function fits(limit, used, cost)
  return cost == 0 or (cost <= limit and cost <= max(limit - used, 0))
end

-- The units that a charge takes: all, or where there is no room as many as fit below `most`.
local function units_of(room, used, cost, most)
  return room and cost or min(cost, max(most - used, 0))
end
