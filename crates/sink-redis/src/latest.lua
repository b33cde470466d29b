-- Each field has its latest value, from any lane.
writes_revisions = true
apply = function(key, field, order, value)
  local name = key .. ' ' .. field
  local before = redis.call('HGET', revisions, name)
  if before and before > order then return end
  local answer = redis.pcall('HSET', key, field, value)
  if type(answer) == 'table' and answer.err then return answer end
  return redis.pcall('HSET', revisions, name, order)
end
