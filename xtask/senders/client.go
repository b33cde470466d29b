// Command client sends 1,000 marked events by the bulk indexer of go-elasticsearch, unchanged. FOREBAY_URL has the intake's URL.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v9"
	"github.com/elastic/go-elasticsearch/v9/esutil"
)

const (
	events = 1000
	batch  = 10
)

func main() {
	client, err := elasticsearch.NewClient(elasticsearch.Config{
		Addresses:    []string{os.Getenv("FOREBAY_URL")},
		MaxRetries:   20,
		RetryBackoff: func(int) time.Duration { return 100 * time.Millisecond },
	})
	if err != nil {
		log.Fatal(err)
	}
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{
		Client:        client,
		Index:         "logs-app-default",
		NumWorkers:    1,
		FlushInterval: 50 * time.Millisecond,
		OnError:       func(_ context.Context, err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for number := range events {
		item := esutil.BulkIndexerItem{
			Action:     "create",
			DocumentID: fmt.Sprintf("id-%d", number),
			Body:       strings.NewReader(fmt.Sprintf(`{"order":"mark-%04d"}`, number)),
			OnFailure: func(_ context.Context, _ esutil.BulkIndexerItem, item esutil.BulkIndexerResponseItem, err error) {
				log.Print("failed: ", item.Error.Reason, err)
			},
		}
		if err := indexer.Add(context.Background(), item); err != nil {
			log.Fatal(err)
		}
		if number%batch == batch-1 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := indexer.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	stats := indexer.Stats()
	if stats.NumFailed > 0 {
		log.Fatalf("%d events failed", stats.NumFailed)
	}
	fmt.Println("done")
}
