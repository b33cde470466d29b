get = function(key) return redis.pcall('GET', key) end
put = function(key, _, value) return redis.pcall('SET', key, value) end
