-- The beginning of all scripts. Keys: the hash of cursors, the hash of revisions, then the keys of the data.
-- Arguments: the lane, the minimum of its cursor, its new cursor, the type that the keys must have, the maximum of entries, the expected
-- claim; then for each record its sequence, the number of its key, its name, its order and its value.
local cursors, revisions = KEYS[1], KEYS[2]
local lane, at_least, last, kind, entries_max, claim = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local WIDTH, HEAD = 5, 7

-- Whole numbers stay strings: Lua's own numbers can't hold all of them.
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
