-- Decides on the claims of up to 32 requests at once, charges them, gives charges back.
--
--   ARGV  mode: d decide, u undo, r renew
--         how many limits; of each 8: algorithm's letter, numbers in short, 6 numbers
--         d: how many shapes of claims; of each 5: limit, kind, cost or increment, its ticks below
--            a microsecond, 1 where it can never pass or a lease's length as a negative number
--            how many claims the requests have, "1,3,1"; empty: one each
--            of each claim its shape, or "shape more", where more is a phase or a slot's id
--            how many conversions; of each 3: claim, state expected, state to take for it
--         u: how many; of each 10: limit, 8 numbers, for how many ms it is marked as done or ''
--         r: how many; of each 3: slot, units, time to live
--   KEYS  one for each claim, or for each that is undone or renewed; behind them one for each mark
--
-- Answers {time, for each request one of
--   "what was done (LOOKED...), and the state before"                        one claim alone
--   {0 denied | 1 allowed, the same for each claim}
--   {2, for each claim whose state has other numbers: which, its state}      nothing was charged
--   {3}      a calendar's edges that were sent do not surround the time       nothing was charged
--   {4, text}     what went wrong                                            nothing was charged
-- }.
--
-- Exact with doubles: every number here is a whole one below 2^53. Times are microseconds since 1970
-- (`wall`) or since 2025 (`now`), and ticks below a microsecond beside them. For such a and b > 0 with
-- a + b < 2^53, floor(a / b) is exact: the quotient lies at least 1 / b below the next whole number
-- k, and half the distance of doubles just below k is at most k * 2^-53 < 1 / b, so it is never
-- rounded up to k. Then floor(a / b) * b <= a is exact too.
local MODE = ARGV[1]
local floor, format, match, sub = math.floor, string.format, string.match, string.sub
local call = redis.call

local LOOKED_NO_ROOM, LOOKED_ROOM, CHARGED, FORCED = '0', '1', '2', '3'
local BOUNDARIES = {}  -- thrown: the edges that were sent do not surround the time
local MOST = 9007199254740992

local clock = call('TIME')
local seconds = tonumber(clock[1])
local wall = seconds * 1000000 + clock[2]
local now = wall - 1735689600000000
-- Instants fit 64 bits of C++'s eighths of nanoseconds from 2025 to 2055.
if now < 0 or now > 946080000000000 then
  return redis.error_reply('CLOCK the time of the server is before 2025 or after 2054')
end

-- A whole number as text. (tostring() rounds to 14 digits, %.0f takes twice as long, and %d may be
-- cut to 32 bits: so by halves.)
local function text_of(number)
  if number < 1000000000 then return format('%d', number) end
  local high = floor(number / 1000000000)
  return format('%d%09d', high, number - high * 1000000000)
end

-- A time to live that covers `us`. One millisecond more, since the server may date what it keeps by
-- a reading of the clock that is older than `wall`, and is cut to milliseconds.
local function milliseconds(us) return text_of(floor(us / 1000) + 2) end

local function damaged() error('DAMAGED the state of a key is none of ours', 0) end

local function whole(text)
  local number = tonumber(text)
  if number >= MOST then damaged() end
  return number
end

local algorithm  -- of a letter, made once

-- The state to take for another; none where nothing is owed.
local function converted(conversion) return conversion[2] ~= '' and conversion[2] end

-- A state that is one text. Returns it, or false when there is none; or nil and what is there, when
-- that was written under other numbers.
local function read_text(key, limit, conversion)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    if not match(value.err, 'WRONGTYPE') then error(value.err, 0) end
    local image, header = algorithm('list').image(key)
    if conversion and header == conversion[1] then return converted(conversion) end
    return nil, image
  end
  if not value then return false end
  if conversion and value == conversion[1] then return converted(conversion) end
  if sub(value, 1, limit.at - 1) ~= limit.sig then return nil, value end
  return value
end

-- `life` in microseconds; a negative one: at least so long, and as long as the key lives anyway.
local function write_text(key, _, text, life)
  local ttl = milliseconds(life < 0 and -life or life)
  if life < 0 then ttl = format('%.0f', math.max(tonumber(ttl), call('PTTL', key))) end
  call('SET', key, text, 'PX', ttl)
end

-- Makes the functions of the algorithm of that letter. Not all are made in each call: that would take
-- as long as a decision.
--   read(key, limit, conversion) -> state; or nil, what is there
--   decide(limit, state, cost, ticks, more, how) -> room, state after or nil, state as told, life
--     how: 0 look, 1 charge if there is room, 2 charge whatever the room
--   write(key, limit, state, life)
--   undo(key, limit, state, first): the arguments begin at ARGV[first]
--     -> state after and life, or true when it is written already; or nil
local function build(letter)
