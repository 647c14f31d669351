// Command workload is what runs in the pods of the tests. Its first argument says what it does; the others only name it:
//
//	wait NAME    until it is told to end
//	serve NAME   the same, saying much, and answering at port 8080 how it is: see answer
//	tell NAME    say the name and end
//	hold         say so, and end with the standard input
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// tickEvery is how often it looks whether it was kept from running.
	tickEvery = 100 * time.Millisecond
	// lineBytes is said at each tick: who does not read it soon has a writer that stands still.
	lineBytes = 4 << 10
)

// answer is how the process is: nothing but a number grows while all is well.
type answer struct {
	// Started is when this process was, in nanoseconds: another one has another number.
	Started int64
	// Probes were answered.
	Probes int
	// GapMilliseconds is the longest time between two ticks since it was last asked at /again.
	GapMilliseconds int64
}

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	switch os.Args[1] {
	case "serve":
		go serve()
	case "tell":
		fmt.Println(os.Args[2])
		return
	case "hold":
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	<-end
}

func serve() {
	var mu sync.Mutex
	now := answer{Started: time.Now().UnixNano()}
	go func() {
		last := time.Now()
		for at := range time.Tick(tickEvery) {
			mu.Lock()
			now.GapMilliseconds = max(now.GapMilliseconds, at.Sub(last).Milliseconds())
			mu.Unlock()
			last = at
			fmt.Printf("%d%s\n", at.UnixNano(), strings.Repeat(" ", lineBytes))
		}
	}()
	err := http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/probe":
			now.Probes++
		case "/again":
			now.GapMilliseconds = 0
		}
		_ = json.NewEncoder(w).Encode(now)
	}))
	panic(err)
}
