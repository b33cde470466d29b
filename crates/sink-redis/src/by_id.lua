-- An event is written once under its id. A repetition has the same payload, or is rejected. A result replaces older revisions of itself.
writes_revisions = true
local get, put
local known = {}

local function look(key, id)
  local value = get(key, id)
  if type(value) == 'table' then return {err = value.err} end
  return {value = value, revision = redis.call('HGET', revisions, key .. ' ' .. id)}
end

check = function(key, id, revision, value)
  local name = key .. ' ' .. id
  local here = known[name] or look(key, id)
  known[name] = here
  if here.err then return here.err end
  if revision == '' then
    if not here.value then
      here.value, here.is_new = value, true
    elseif here.value ~= value then
      return 'an event with this id and another payload is already stored'
    end
  elseif here.value and not here.revision then
    return 'an event that is not a result is already stored under this id'
  elseif not here.value or less(here.revision, revision) then
    here.value, here.revision, here.is_new = value, revision, true
  end
end

apply = function(key, id)
  local here = known[key .. ' ' .. id]
  if not here.is_new then return end
  local answer = put(key, id, here.value)
  if type(answer) == 'table' and answer.err then return answer end
  if here.revision then answer = redis.pcall('HSET', revisions, key .. ' ' .. id, here.revision) end
  here.is_new = false
  return answer
end
