-- Replaces the claim on a lane. Key: the hash with the lane's cursor and claim. Arguments: the lane, the new claim, whether to replace any
-- claim, the new cursor or an empty text, then the claims that may be replaced.
local cursors, lane, claim, force, position = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local name = 'claim:' .. lane
local held = redis.call('HGET', cursors, name)
local allowed = not held or held == claim or force ~= ''
for at = 5, #ARGV do allowed = allowed or held == ARGV[at] end
if allowed then
  redis.call('HSET', cursors, name, claim)
  -- The second write makes Redis log the script as a transaction. It reverts a single command at its second start if the log has the beginning
  -- of a transaction before it.
  redis.call('HSET', cursors, name, claim)
  if position ~= '' then redis.call('HSET', cursors, lane, position) end
  held = claim
end
return {redis.call('HGET', cursors, lane) or '0', held}
