error('USAGE an algorithm that this script does not know', 0)
end

local made = {}
algorithm = function(letter)
  local known = made[letter]
  if not known then
    known = build(letter)
    made[letter] = known
  end
  return known
end

-- What went wrong for one request, as its answer.
local function trouble(what)
  if what == BOUNDARIES then return {3} end
  if type(what) == 'table' then what = what.err end
  return {4, tostring(what)}
end

local limits, at = {}, 3
for i = 1, tonumber(ARGV[2]) do
  local sig = ARGV[at + 1]
  limits[i] = {tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]),
               tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7]),
               algorithm = algorithm(ARGV[at]), sig = sig, at = #sig + 1}
  at = at + 8
end

local answers = {wall}

if MODE == 'u' then
  -- `mark`: the key that says that it was done. Set once there is something to give back, and before
  -- that is written: one that fails behind it is not done by a second call either.
  local function undo(key, mark, first)
    local limit = limits[tonumber(ARGV[first])]
    local state, other = limit.algorithm.read(key, limit)
    if other or not state then return {0} end
    if mark and not call('SET', mark, '1', 'NX', 'PX', ARGV[first + 9]) then return {1} end
    local after, life = limit.algorithm.undo(key, limit, state, first + 1)
    if not after then return {0} end
    if after ~= true then limit.algorithm.write(key, limit, after, life) end
    return {1}
  end
  local count, marks = tonumber(ARGV[at]), 0
  for i = 1, count do
    local first, mark = at + 1 + (i - 1) * 10, nil
    if ARGV[first + 9] ~= '' then
      marks = marks + 1
      mark = KEYS[count + marks]
    end
    local done, answer = pcall(undo, KEYS[i], mark, first)
    answers[i + 1] = done and answer or trouble(answer)
  end
  return answers
end

if MODE == 'r' then
  for i = 1, tonumber(ARGV[at]) do
    local first = at + 1 + (i - 1) * 3
    local done, answer = pcall(algorithm('n').renew, KEYS[i], ARGV[first],
                               tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]))
    answers[i + 1] = done and {answer} or trouble(answer)
  end
  return answers
end

-- By the word that claims have for them: limit, kind, cost, ticks, more. (Tables with names would be
-- four times as large, and to make them the most of a small call's time.)
local shapes = {}
for i = 1, tonumber(ARGV[at]) do
  shapes[tostring(i)] = {limits[tonumber(ARGV[at + 1])], ARGV[at + 2], tonumber(ARGV[at + 3]),
                         tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])}
  at = at + 5
end
local sizes, claims = ARGV[at + 1], at + 1  -- the first claim is ARGV[claims + 1]

local conversions
for i = 1, tonumber(ARGV[claims + #KEYS + 1]) do
  local first = claims + #KEYS + 2 + (i - 1) * 3
  conversions = conversions or {}
  conversions[tonumber(ARGV[first])] = {ARGV[first + 1], ARGV[first + 2]}
end

local function shape_of(word)
  local shape = shapes[word]
  if shape then return shape, shape[5] end
  local number, more = match(word, '^(%d+) (.*)$')
  return shapes[number], more
end

-- All that a request of one binding claim needs.
local function decide_one(index, shape, more)
  local limit, key = shape[1], KEYS[index]
  local algorithm = limit.algorithm
  local state, other = algorithm.read(key, limit, conversions and conversions[index])
  if other then return {2, 1, other} end
  local room, after, told, life = algorithm.decide(limit, state, shape[3], shape[4], more, 1)
  if after then
    algorithm.write(key, limit, after, life)
    return CHARGED .. (told or '')
  end
  return (room and LOOKED_ROOM or LOOKED_NO_ROOM) .. (told or '')
end

-- Made where there are requests of several claims.
local function make_decide_binding()
  -- Each claim's shape, and what more it has; nil where some do not bind or have a key in common.
  local function shapes_of(first, count)
    local found, mores, keys = {}, {}, {}
    for i = 1, count do
      local index = first + i - 1
      local key = KEYS[index]
      found[i], mores[i] = shape_of(ARGV[claims + index])
      if found[i][2] ~= 'b' or keys[key] then return nil end
      keys[key] = true
    end
    return found, mores
  end

  -- Each claim is decided on once, as if charged, and kept if all have room. Nil: not for these.
  return function(first, count)
    local asked, mores = shapes_of(first, count)
    if not asked then return nil end
    local rooms, after, told, lives, allowed, others = {}, {}, {}, {}, true, nil
    for i, shape in ipairs(asked) do
      local index, limit = first + i - 1, shape[1]
      local key, algorithm = KEYS[index], limit.algorithm
      local state, other = algorithm.read(key, limit, conversions and conversions[index])
      if other then
        others = others or {2}
        others[#others + 1] = i
        others[#others + 1] = other
      elseif not others then
        rooms[i], after[i], told[i], lives[i] =
            algorithm.decide(limit, state, shape[3], shape[4], mores[i], 1)
        allowed = allowed and rooms[i]
      end
    end
    if others then return others end
    local words = {allowed and 1 or 0}
    for i, shape in ipairs(asked) do
      local charges = allowed and after[i]
      if charges then shape[1].algorithm.write(KEYS[first + i - 1], shape[1], after[i], lives[i]) end
      local done = charges and CHARGED or (rooms[i] and LOOKED_ROOM or LOOKED_NO_ROOM)
      words[i + 1] = done .. (told[i] or '')
    end
    return words
  end
end

-- Made where there are other requests.
local function make_decide_group()
  local BINDS = {b = true, B = true, l = true}
  local CHARGES = {b = true, B = true}
  local ALWAYS = {B = true, S = true, f = true}

  local function decide(claim, state, how)
    local shape = claim.shape
    return shape[1].algorithm.decide(shape[1], state, shape[3], shape[4], claim.more, how)
  end

  -- The states of a request's claims by key, or the answer that some have other numbers.
  local function read_states(asked, first)
    local states, under, others = {}, {}, nil
    for i, claim in ipairs(asked) do
      local key, limit = claim.key, claim.shape[1]
      if under[key] and under[key] ~= limit then
        error('USAGE one key under two limits in a request', 0)
      elseif not under[key] then
        under[key] = limit
        local state, other = limit.algorithm.read(key, limit,
                                                   conversions and conversions[first + i - 1])
        if other then
          others = others or {2}
          others[#others + 1] = i
          others[#others + 1] = other
        end
        states[key] = state
      end
    end
    return states, others
  end

  -- Charges every binding claim, or none: then it tells the first that no longer had room, since
  -- another claim of the request has the same key.
  local function charge_binding(asked, states, answer, lives, changed)
    local after, charged = {}, {}
    for i, claim in ipairs(asked) do
      if CHARGES[claim.shape[2]] then
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
      local always = ALWAYS[claim.shape[2]] and answer[2 * i] ~= CHARGED
      if always or (claim.shape[2] == 's' and allowed) then
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

  return function(first, count)
    local asked = {}
    for i = 1, count do
      local shape, more = shape_of(ARGV[claims + first + i - 1])
      asked[i] = {key = KEYS[first + i - 1], shape = shape, more = more}
    end
    local states, others = read_states(asked, first)
    if others then return others end
    local lives, changed, answer, allowed = {}, {}, {}, true
    for i, claim in ipairs(asked) do
      local room, _, told = decide(claim, states[claim.key], 0)
      answer[2 * i], answer[2 * i + 1] = room and LOOKED_ROOM or LOOKED_NO_ROOM, told or ''
      if not room and BINDS[claim.shape[2]] then allowed = false end
    end
    allowed = allowed and charge_binding(asked, states, answer, lives, changed)
    charge_others(asked, states, answer, lives, changed, allowed)
    for _, claim in ipairs(asked) do
      local key, limit = claim.key, claim.shape[1]
      if changed[key] then
        limit.algorithm.write(key, limit, states[key], lives[key])
        changed[key] = nil
      end
    end
    local words = {allowed and 1 or 0}
    for i = 1, count do words[i + 1] = answer[2 * i] .. answer[2 * i + 1] end
    return words
  end
end

local decide_binding, decide_group
local next_size = sizes ~= '' and string.gmatch(sizes, '%d+')
local first = 1
while first <= #KEYS do
  local count = next_size and tonumber(next_size()) or 1
  local done, answer = true, nil
  if count == 1 then
    local shape, more = shape_of(ARGV[claims + first])
    if shape[2] == 'b' then done, answer = pcall(decide_one, first, shape, more) end
  else
    decide_binding = decide_binding or make_decide_binding()
    done, answer = pcall(decide_binding, first, count)
  end
  if done and not answer then
    decide_group = decide_group or make_decide_group()
    done, answer = pcall(decide_group, first, count)
  end
  answers[#answers + 1] = done and answer or trouble(answer)
  first = first + count
end
return answers
