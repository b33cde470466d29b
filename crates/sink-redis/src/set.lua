apply = function(key, _, _, payload)
  return redis.pcall('SADD', key, payload)
end
