// Command requestreply is the peer of `cargo xtask bench bridge`: two programs over nats.go, of which one answers
// each request with a fixed text, and the other keeps some requests in flight for some seconds. It prints how many a
// second were answered, and the 99th percentile in milliseconds.
//
//	requestreply reply -url nats://127.0.0.1:4222 -subject peer
//	requestreply request -url nats://127.0.0.1:4222 -subject peer -flight 64 -seconds 5
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// requestBytes and replyBytes are the sizes of an id and of an event.
const (
	requestBytes = 36
	replyBytes   = 300
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("name the program: reply or request")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	url := flags.String("url", nats.DefaultURL, "the bus")
	subject := flags.String("subject", "peer", "the subject of the requests")
	flight := flags.Int("flight", 64, "requests in flight")
	seconds := flags.Int("seconds", 5, "how long to send; with 0 a request each")
	flags.Parse(os.Args[2:])
	connection, err := nats.Connect(*url)
	if err != nil {
		log.Fatal(err)
	}
	switch os.Args[1] {
	case "reply":
		reply(connection, *subject)
	case "request":
		request(connection, *subject, *flight, time.Duration(*seconds)*time.Second)
	default:
		log.Fatalf("%q is no program: name reply or request", os.Args[1])
	}
}

func reply(connection *nats.Conn, subject string) {
	body := make([]byte, replyBytes)
	answer := func(message *nats.Msg) { message.Respond(body) }
	if _, err := connection.QueueSubscribe(subject, "workers", answer); err != nil {
		log.Fatal(err)
	}
	select {}
}

func request(connection *nats.Conn, subject string, flight int, duration time.Duration) {
	times := make([][]time.Duration, flight)
	begun := time.Now()
	var all sync.WaitGroup
	for number := range times {
		all.Add(1)
		go func() {
			defer all.Done()
			body := make([]byte, requestBytes)
			for first := true; first || time.Since(begun) < duration; first = false {
				sent := time.Now()
				if _, err := connection.Request(subject, body, 10*time.Second); err != nil {
					log.Fatal(err)
				}
				times[number] = append(times[number], time.Since(sent))
			}
		}()
	}
	all.Wait()
	elapsed := time.Since(begun)
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	p99 := sorted[len(sorted)*99/100]
	fmt.Printf("%.0f %.3f\n", float64(len(sorted))/elapsed.Seconds(), p99.Seconds()*1000)
}
