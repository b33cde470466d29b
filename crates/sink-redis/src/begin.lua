-- What all scripts begin with. Keys: the cursors, what is known of revisions, then those of the data.
-- Arguments: the lane, the least that its cursor may be, what it shall be, what must stand under the keys, how many entries
-- are kept, whose claim it must be; then for each record its sequence, the number of its key, its name, its order and its value.
local cursors, revisions = KEYS[1], KEYS[2]
local lane, at_least, last, kind, entries_max, claim = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local WIDTH, HEAD = 5, 7

-- Whole numbers stay texts: Lua's own numbers can't hold all of them.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local cursor = redis.call('HGET', cursors, lane) or '0'
local claimed = redis.call('HGET', cursors, 'claim:' .. lane)
if claimed and claimed ~= claim then return {'claimed', cursor} end
if less(cursor, at_least) then return {'lost', cursor} end
if not less(cursor, last) then return {'stored', cursor} end
if kind ~= '' then
  for k = 3, #KEYS do
    local found = redis.call('TYPE', KEYS[k]).ok
    if found ~= 'none' and found ~= kind then
      return redis.error_reply('WRONGTYPE ' .. KEYS[k] .. ' is a ' .. found .. ' and no ' .. kind)
    end
  end
end
local check, apply, finish, writes_revisions
