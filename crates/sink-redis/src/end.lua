local first, refused = #ARGV + 1, {'refused', cursor}
for at = HEAD, #ARGV, WIDTH do
  if less(cursor, ARGV[at]) then
    first = math.min(first, at)
    local why = check and check(KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
    if why then
      refused[#refused + 1] = tostring((at - HEAD) / WIDTH)
      refused[#refused + 1] = why
    end
  end
end
if #refused > 2 then return refused end

-- These change no data, but they fail before the first write if the server rejects writes.
redis.call('HSET', cursors, lane, cursor)
if claim ~= '' and not claimed then redis.call('HSET', cursors, 'claim:' .. lane, claim) end
if writes_revisions then redis.call('HDEL', revisions, '') end
for at = first, #ARGV, WIDTH do
  local answer = apply(KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
  if type(answer) == 'table' and answer.err then
    redis.call('HSET', cursors, lane, cursor)
    return {'stopped', cursor, tostring((at - HEAD) / WIDTH), answer.err}
  end
  cursor = ARGV[at]
end
if finish then finish() end
redis.call('HSET', cursors, lane, last)
return {'stored', last}
