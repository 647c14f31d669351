package gossip

import (
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"
)

// TestStrangersAtTheGossipPort: connections that say nothing are bounded, members still join, and leaving does not hang on them.
func TestStrangersAtTheGossipPort(t *testing.T) {
	join := func(name string, seeds ...string) *Pool {
		p, err := Join(Config{
			Name: name, Role: RoleServer, BindAddr: "127.0.0.1:0", Keys: [][]byte{testKey}, Label: "test", Seeds: func() []string { return seeds },
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := join("a")
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(first.list.LocalNode().Port)))
	var silent []net.Conn
	for range streamsMax {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(5 * time.Second)) // the library lets it be for 10 s
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest of too many strangers: %v", err)
	}
	second := join("b")
	if n, err := second.list.Join([]string{at}); n != 1 || err != nil {
		t.Errorf("%d joined: %v", n, err)
	}
	for _, p := range []*Pool{second, first} {
		if err := p.list.Shutdown(); err != nil {
			t.Error(err)
		}
	}
}
