apply = function(key, _, _, payload)
  return redis.pcall('RPUSH', key, payload)
end
finish = function()
  if entries_max == '' then return end
  for k = 3, #KEYS do redis.pcall('LTRIM', KEYS[k], '-' .. entries_max, '-1') end
end
