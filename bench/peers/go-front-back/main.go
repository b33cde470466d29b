// Command frontback is the peer of `cargo xtask bench hop`: a front-end that takes JSON over HTTP, decodes it,
// encodes it again and posts it to a back-end, which decodes and discards it. Nothing is durable. The client of the
// front-end keeps its connections, as many as there are requests in flight.
//
//	frontback back -listen 127.0.0.1:8090
//	frontback front -listen 127.0.0.1:8091 -back http://127.0.0.1:8090/ingest/data
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

// path is where both take payloads.
const path = "/ingest/data"

// connectionsMax is the number of idle connections that the front-end keeps to its back-end.
const connectionsMax = 1024

func main() {
	if len(os.Args) < 2 {
		log.Fatal("name the service: front or back")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:8090", "the address to take payloads on")
	back := flags.String("back", "http://127.0.0.1:8090"+path, "the URL of the back-end")
	flags.Parse(os.Args[2:])
	handlers := map[string]http.HandlerFunc{"front": forward(*back), "back": discard}
	handler, known := handlers[os.Args[1]]
	if !known {
		log.Fatalf("%q is no service: name front or back", os.Args[1])
	}
	http.HandleFunc(path, handler)
	log.Fatal(http.ListenAndServe(*listen, nil))
}

// decode reads the JSON of a request, and answers 400 where it is none.
func decode(answer http.ResponseWriter, request *http.Request) (any, bool) {
	var payload any
	if err := json.NewDecoder(request.Body).Decode(&payload); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	return payload, true
}

// discard is the back-end.
func discard(answer http.ResponseWriter, request *http.Request) {
	decode(answer, request)
}

// forward is the front-end.
func forward(back string) http.HandlerFunc {
	transport := &http.Transport{MaxIdleConns: connectionsMax, MaxIdleConnsPerHost: connectionsMax}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return func(answer http.ResponseWriter, request *http.Request) {
		payload, ok := decode(answer, request)
		if !ok {
			return
		}
		if err := post(client, back, payload); err != nil {
			http.Error(answer, err.Error(), http.StatusBadGateway)
		}
	}
}

// post sends a payload and waits for the back-end's word. The answer is read to its end: only then is its connection
// used again.
func post(client *http.Client, back string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	reply, err := client.Post(back, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("the back-end answers %s", reply.Status)
	}
	return nil
}
