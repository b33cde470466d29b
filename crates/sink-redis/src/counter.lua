-- A result counts with its newest revision: the amount of an older revision is subtracted.
writes_revisions = true
apply = function(key, field, order, amount)
  if order == '' then return redis.pcall('HINCRBY', key, field, amount) end
  local id, revision = string.match(order, '^(%S+) (%d+)$')
  local name = key .. ' ' .. id
  local before = redis.call('HGET', revisions, name)
  local counted, old, of
  if before then
    counted, old, of = string.match(before, '^(%d+) (%-?%d+) (.*)$')
    if not less(counted, revision) then return end
  end
  local answer = redis.pcall('HINCRBY', key, field, amount)
  if type(answer) == 'table' and answer.err then return answer end
  if before and old ~= '0' then
    local back = string.sub(old, 1, 1) == '-' and string.sub(old, 2) or '-' .. old
    answer = redis.pcall('HINCRBY', key, of, back)
    if type(answer) == 'table' and answer.err then
      if amount ~= '0' then
        redis.call('HINCRBY', key, field, string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount)
      end
      return answer
    end
  end
  return redis.pcall('HSET', revisions, name, revision .. ' ' .. amount .. ' ' .. field)
end
