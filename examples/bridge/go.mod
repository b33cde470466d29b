module example.org/prices

go 1.25.0

require github.com/nats-io/nats.go v1.53.1
