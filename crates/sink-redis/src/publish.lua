apply = function(channel, _, _, payload)
  return redis.pcall('PUBLISH', channel, payload)
end
