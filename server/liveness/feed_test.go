package liveness

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

func TestChangeFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = f.run(ctx) }()
		f.add("first")
		synctest.Wait() // it waits for a reader now
		f.add("n1")
		f.add("n1")
		if a, b := <-f.changes(), <-f.changes(); a != "first" || b != "n1" {
			t.Errorf("got %q, %q", a, b)
		}
		f.add("first")
		synctest.Wait()
		for i := range feedLimit + 10 {
			f.add(fmt.Sprint(i))
		}
		if a, b := <-f.changes(), <-f.changes(); a != "first" || b != "" {
			t.Errorf("got %q, %q, want everything after the limit", a, b)
		}
		synctest.Wait()
		select {
		case name := <-f.changes():
			t.Errorf("%q besides", name)
		default:
		}
		cancel()
	})
}
