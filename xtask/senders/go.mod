module senders

go 1.24

require github.com/elastic/go-elasticsearch/v9 v9.5.2
