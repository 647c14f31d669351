package raftstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// TestSmallObjectsAreCharged for more than their bytes: 3 KiB each, of which 1 MiB holds about 300.
func TestSmallObjectsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 1, func(cfg *raftstore.Config) { cfg.ObjectsLimitBytes = 1 << 20 })
		defer c.Close()
		c.Leader()
		var n int
		var err error
		for ; n < 1000 && err == nil; n++ {
			_, err = c.Store(0).Propose(t.Context(), userPut(fmt.Sprint("/small/", n)))
		}
		if !errors.Is(err, raftstore.ErrNoSpace) || n < 250 || n > 350 {
			t.Errorf("%d objects, %v", n, err)
		}
	})
}

// What all objects may take is bounded, whoever writes them and wherever: the refusal
// says so, what makes room passes, and with room writes go on by themselves.
func TestObjectsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, size = 1 << 20, 95 << 10
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.ObjectsLimitBytes = limit })
		defer c.Close()
		large := func(i int) command.Command {
			return command.Command{Ops: []command.Op{{Kind: command.Put, Key: fmt.Sprint("/k/", i), Value: make([]byte, size)}}}
		}
		fill := func() (n int, err error) {
			for ; n < 100 && err == nil; n++ {
				_, err = c.Store(n%3).Propose(t.Context(), large(n))
			}
			return n - 1, err
		}
		n, err := fill()
		if !errors.Is(err, raftstore.ErrNoSpace) || !strings.Contains(err.Error(), "all objects take 1 MiB") || n != limit/size+1 {
			t.Fatalf("%d objects, %v", n, err)
		}
		essential := userPut("/lease")
		essential.Essential = true
		for i := range 3 {
			s := c.Store(i)
			if _, err := s.Propose(t.Context(), userPut("/small")); !errors.Is(err, raftstore.ErrNoSpace) {
				t.Errorf("server %d: %v", i, err)
			}
			if _, err := s.Propose(t.Context(), essential); err != nil {
				t.Errorf("server %d, what the system needs: %v", i, err)
			}
			if _, err := s.ReadIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			if status := s.Status(); status.ObjectsBytes < limit || status.ObjectsLimitBytes != limit {
				t.Errorf("server %d says %d of %d", i, status.ObjectsBytes, status.ObjectsLimitBytes)
			}
		}
		c.Stop(0) // what is counted after a start is what was counted before
		c.Restart(0)
		for i := range n {
			c.Leader()
			deletion := command.Command{Ops: []command.Op{{Kind: command.Delete, Key: fmt.Sprint("/k/", i)}}}
			if _, err := c.Store(1+i%2).Propose(t.Context(), deletion); err != nil {
				t.Errorf("deletion: %v", err)
			}
		}
		if again, err := fill(); again != n || !errors.Is(err, raftstore.ErrNoSpace) {
			t.Errorf("with room: %d objects of %d, %v", again, n, err)
		}
	})
}
