// A Pub/Sub for tests: Google's own fake of it, on a free port of the loopback. On another port it
// tells, as JSON, what became of the messages of a topic, which Pub/Sub itself tells nobody.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	server := pstest.NewServer()
	books, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("books at", books.Addr(), "listening on", server.Addr)
	log.Fatal(http.Serve(books, http.HandlerFunc(func(out http.ResponseWriter, asked *http.Request) {
		found := []*pstest.Message{}
		for _, message := range server.Messages() {
			if message.Topic == asked.URL.Query().Get("topic") {
				found = append(found, message)
			}
		}
		json.NewEncoder(out).Encode(found)
	})))
}
