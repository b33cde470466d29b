-- Exchanges the claim on a lane. Key: the hash of cursors, where the claim stands beside the lane's cursor. Arguments: the lane, the new
-- claim, whether it is taken by force, where the cursor is set to, if it is, then the claims that may be there before.
local cursors, lane, claim, force, position = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local name = 'claim:' .. lane
local held = redis.call('HGET', cursors, name)
local allowed = not held or held == claim or force ~= ''
for at = 5, #ARGV do allowed = allowed or held == ARGV[at] end
if allowed then
  redis.call('HSET', cursors, name, claim)
  if position ~= '' then redis.call('HSET', cursors, lane, position) end
  held = claim
end
return {redis.call('HGET', cursors, lane) or '0', held}
