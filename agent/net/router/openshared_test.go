package router

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
)

// TestAPortThatIsNotWantedIsNobodysProblem: once closed, nothing is told of a port that another program has; and what ends late does not
// contradict what is told when it is opened again.
func TestAPortThatIsNotWantedIsNobodysProblem(t *testing.T) {
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, text, _ := net.SplitHostPort(taken.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var last error
	failed := make(chan struct{}, 1)
	problem := func() error { mu.Lock(); defer mu.Unlock(); return last }
	r := &router{Config: Config{
		Ports: Ports{HTTP: port}, Logger: slog.New(slog.DiscardHandler), Listening: func(_ int, err error) {
			mu.Lock()
			last = err
			mu.Unlock()
			if err != nil {
				select {
				case failed <- struct{}{}:
				default:
				}
			}
		},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	for round := range 200 {
		r.openShared(ctx, true)
		<-failed
		if problem() == nil {
			t.Fatal(round, ": the port is taken, and nobody was told last")
		}
		r.openShared(ctx, false)
		if err := problem(); err != nil {
			t.Fatal(round, ": closed, and still told: ", err)
		}
	}
	cancel()
	r.listening.Wait()
}
