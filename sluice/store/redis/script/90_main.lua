local made = {}
local function algorithm(letter)
  if not made[letter] then made[letter] = make[letter]() end
  return made[letter]
end

local function read_limits(first, count)
  local limits = {}
  for i = 1, count do
    local limit = {algorithm = algorithm(ARGV[first]), sig = ARGV[first + 1],
                   at = #ARGV[first + 1] + 1}
    for n = 1, 6 do limit[n] = tonumber(ARGV[first + 1 + n]) end
    limits[i] = limit
    first = first + 8
  end
  return limits, first
end

-- What went wrong for one request, as its answer.
local function trouble(what)
  if what == BOUNDARIES then return {3} end
  if type(what) == 'table' then what = what.err end
  return {4, tostring(what)}
end

local limits, at = read_limits(3, tonumber(ARGV[2]))
local answers = {wall}

if ARGV[1] == 'u' then
  local count = tonumber(ARGV[at])
  local function undo(index, first)
    local limit, key = limits[tonumber(ARGV[first])], KEYS[index]
    local state, other = limit.algorithm.read(key, limit)
    if other or not state then return {0} end
    local after, life = limit.algorithm.undo(key, limit, state, first + 1)
    if not after then return {0} end
    if limit.algorithm.write and after ~= true then limit.algorithm.write(key, limit, after, life) end
    return {1}
  end
  for i = 1, count do
    local done, answer = pcall(undo, i, at + 1 + (i - 1) * 9)
    answers[#answers + 1] = done and answer or trouble(answer)
  end
  return answers
end

if ARGV[1] == 'r' then
  for i = 1, tonumber(ARGV[at]) do
    local first = at + 1 + (i - 1) * 3
    local done, answer = pcall(algorithm('n').renew, KEYS[i], ARGV[first],
                               tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]))
    answers[#answers + 1] = done and {answer} or trouble(answer)
  end
  return answers
end

local groups = tonumber(ARGV[at])
local sizes = at
local claims = sizes + groups + 1  -- of the first claim
local conversions = {}

local function claim_at(index)
  local first = claims + (index - 1) * 5
  local limit = limits[tonumber(ARGV[first])]
  -- Where the ticks of an increment stand, a slot has its id, which is a text.
  return {key = KEYS[index], limit = limit, kind = ARGV[first + 1], cost = tonumber(ARGV[first + 2]),
          ticks = ARGV[first + 3], more = tonumber(ARGV[first + 4])}
end

local BINDS = {b = true, B = true, l = true}
local CHARGES = {b = true, B = true}
local ALWAYS = {B = true, S = true, f = true}

local function decide(claim, state, how)
  local limit = claim.limit
  return limit.algorithm.decide(limit, state, claim.cost, claim.ticks, claim.more, how)
end

-- The states of a request's claims by key, or the answer that some have other numbers.
local function read_states(asked, first)
  local states, under, others = {}, {}, nil
  for i, claim in ipairs(asked) do
    if under[claim.key] and under[claim.key] ~= claim.limit then
      error('USAGE one key under two limits in a request', 0)
    elseif not under[claim.key] then
      under[claim.key] = claim.limit
      local state, other = claim.limit.algorithm.read(claim.key, claim.limit,
                                                      conversions[first + i - 1])
      if other then
        others = others or {2}
        others[#others + 1] = i
        others[#others + 1] = other
      end
      states[claim.key] = state
    end
  end
  return states, others
end

-- Charges every binding claim, or none: then it names the first that no longer had room, since
-- another claim of the request has the same key.
local function charge_binding(asked, states, answer, lives, changed)
  local after, charged = {}, {}
  for i, claim in ipairs(asked) do
    if CHARGES[claim.kind] then
      local state = after[claim.key]
      if state == nil then state = states[claim.key] end
      local room, next_state, told, life = decide(claim, state, 1)
      if not room then
        answer[2 * i], answer[2 * i + 1] = LOOKED_NO_ROOM, told or ''
        return false
      end
      charged[i] = {next_state and CHARGED or LOOKED_ROOM, told or ''}
      if next_state then after[claim.key], lives[claim.key] = next_state, life end
    end
  end
  for i, done in pairs(charged) do answer[2 * i], answer[2 * i + 1] = done[1], done[2] end
  for key, state in pairs(after) do states[key], changed[key] = state, true end
  return true
end

-- What is charged though it does not bind, or though the request is denied.
local function charge_others(asked, states, answer, lives, changed, allowed)
  for i, claim in ipairs(asked) do
    local always = ALWAYS[claim.kind] and answer[2 * i] ~= CHARGED
    if always or (claim.kind == 's' and allowed) then
      local room, next_state, told, life = decide(claim, states[claim.key], 1)
      local what = next_state and CHARGED or (room and LOOKED_ROOM or LOOKED_NO_ROOM)
      if always and not room then
        room, next_state, told, life = decide(claim, states[claim.key], 2)
        what = FORCED
      end
      answer[2 * i], answer[2 * i + 1] = what, told or ''
      if next_state then
        states[claim.key], lives[claim.key], changed[claim.key] = next_state, life, true
      end
    end
  end
end

local function write_all(asked, states, lives, changed)
  for _, claim in ipairs(asked) do
    local key = claim.key
    if changed[key] then
      claim.limit.algorithm.write(key, claim.limit, states[key], lives[key])
      changed[key] = nil
    end
  end
end

local function decide_group(first, count)
  local asked = {}
  for i = 1, count do asked[i] = claim_at(first + i - 1) end
  local states, others = read_states(asked, first)
  if others then return others end
  local lives, changed = {}, {}
  if count == 1 and asked[1].kind == 'b' then
    local claim = asked[1]
    local room, after, told, life = decide(claim, states[claim.key], 1)
    if after then claim.limit.algorithm.write(claim.key, claim.limit, after, life) end
    return {room and 1 or 0, after and CHARGED or (room and LOOKED_ROOM or LOOKED_NO_ROOM),
            told or ''}
  end
  local answer, allowed = {0}, true
  for i, claim in ipairs(asked) do
    local room, _, told = decide(claim, states[claim.key], 0)
    answer[2 * i], answer[2 * i + 1] = room and LOOKED_ROOM or LOOKED_NO_ROOM, told or ''
    if not room and BINDS[claim.kind] then allowed = false end
  end
  allowed = allowed and charge_binding(asked, states, answer, lives, changed)
  charge_others(asked, states, answer, lives, changed, allowed)
  write_all(asked, states, lives, changed)
  answer[1] = allowed and 1 or 0
  return answer
end

local total = 0
for i = 1, groups do total = total + ARGV[sizes + i] end
local after_claims = claims + total * 5
for i = 1, tonumber(ARGV[after_claims]) do
  local first = after_claims + 1 + (i - 1) * 3
  conversions[tonumber(ARGV[first])] = {ARGV[first + 1], ARGV[first + 2]}
end

local first = 1
for i = 1, groups do
  local count = tonumber(ARGV[sizes + i])
  local done, answer = pcall(decide_group, first, count)
  answers[#answers + 1] = done and answer or trouble(answer)
  first = first + count
end
return answers
