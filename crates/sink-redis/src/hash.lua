get = function(key, id) return redis.pcall('HGET', key, id) end
put = function(key, id, value) return redis.pcall('HSET', key, id, value) end
