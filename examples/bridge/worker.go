// A NATS micro service: it answers GET /prices/{product}.
package main

import (
	"log"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

func price(request micro.Request) {
	product := request.Headers().Get("Forebay-Param-product")
	if product == "tea" {
		request.RespondJSON(map[string]any{"product": product, "price": 3.5})
	} else {
		// The bridge answers with this status.
		request.Error("404", "no such product", nil)
	}
}

func main() {
	bus, err := nats.Connect(os.Getenv("NATS_URL"), nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	endpoint := micro.EndpointConfig{Subject: "shop.prices.get", Handler: micro.HandlerFunc(price)}
	_, err = micro.AddService(bus, micro.Config{Name: "prices", Version: "1.0.0", Description: "prices of products", Endpoint: &endpoint})
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
