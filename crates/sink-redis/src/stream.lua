apply = function(key, id, revision, payload)
  local words = {'XADD', key}
  if entries_max ~= '' then
    words[3], words[4], words[5] = 'MAXLEN', '~', entries_max
  end
  words[#words + 1] = '*'
  words[#words + 1] = 'id'
  words[#words + 1] = id
  if revision ~= '' then
    words[#words + 1] = 'revision'
    words[#words + 1] = revision
  end
  words[#words + 1] = 'payload'
  words[#words + 1] = payload
  return redis.pcall(unpack(words))
end
