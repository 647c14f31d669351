package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports stand above the well-known ones and below the node ports of Services (30000 to 32767).
const (
	firstPort = 12000
	lastPort  = 27999
	blockSize = 50
	blocks    = (lastPort - firstPort + 1) / blockSize
)

var errNoPort = errors.New("every block of test ports is taken by another process")

// block is what this process holds: the ports after next, up to end.
type block struct {
	held      net.Listener
	next, end int
}

var (
	mu  sync.Mutex
	own block
)

// Address returns a loopback address, 127.0.0.1:PORT, that nobody listens on and that is given
// to nobody else while this process lives. It may be called by several goroutines.
func Address() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for {
		if own.next == own.end {
			if err := takeBlock(); err != nil {
				return "", err
			}
		}
		address := at(own.next)
		own.next++
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
}

// takeBlock takes a block that no process holds. The blocks that this process used up stay
// its own: their listeners are never closed.
func takeBlock() error {
	start := rand.IntN(blocks)
	for i := range blocks {
		first := firstPort + (start+i)%blocks*blockSize
		if l, err := net.Listen("tcp", at(first)); err == nil {
			own = block{held: l, next: first + 1, end: first + blockSize}
			return nil
		}
	}
	return errNoPort
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
