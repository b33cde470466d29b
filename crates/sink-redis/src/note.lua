-- Saves the positions of a lane, as a whole and for each node of a cluster. Keys: the lane's positions, a hash by node, in which the whole
-- lane has an empty name; and the hash with the lane's claim. Arguments: the lane, the expected claim, the minimum of its position, its new
-- position, then nodes and their positions.
local notes, claims, claim, at_least, last = KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]

-- Whole numbers stay strings: Lua's own numbers can't hold all of them.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local position = redis.call('HGET', notes, '') or '0'
local claimed = redis.call('HGET', claims, 'claim:' .. ARGV[1])
if claimed and claimed ~= claim then return {'claimed', position} end
if less(position, at_least) then return {'lost', position} end
if claim ~= '' and not claimed then redis.call('HSET', claims, 'claim:' .. ARGV[1], claim) end
for at = 5, #ARGV, 2 do
  if less(redis.call('HGET', notes, ARGV[at]) or '0', ARGV[at + 1]) then
    redis.call('HSET', notes, ARGV[at], ARGV[at + 1])
  end
end
if less(position, last) then
  redis.call('HSET', notes, '', last)
  position = last
end
return {'stored', position}
