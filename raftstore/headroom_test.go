package raftstore_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

var (
	roomy = replica.Space{FreeBytes: 900 << 20, TotalBytes: 1000 << 20}
	full  = replica.Space{FreeBytes: 10 << 20, TotalBytes: 1000 << 20}
)

// roomNews is how long after a change every leader has heard of it.
const roomNews = 5 * time.Second

func userPut(key string) command.Command {
	return command.Command{Ops: []command.Op{{Kind: command.Put, Key: key, Value: []byte{command.EncodingJSON}}}}
}

// A disk that is nearly full, whosever it is, keeps user writes away from all, and
// nothing else. With room again, writes go on by themselves.
func TestFullDiskRefusesUserWrites(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, nil)
				defer c.Close()
				at := c.Leader()
				if who == "follower" {
					at = others(at)[0]
				}
				mustPut(t, c.Store(0), "/k", "v")
				c.SetSpace(at, full)
				time.Sleep(roomNews)
				for i := range c.Size() {
					checkRefused(t, c.Store(i), c.Store(at).Status().Name)
				}
				c.SetSpace(at, roomy)
				time.Sleep(roomNews)
				for i := range c.Size() {
					mustPut(t, c.Store(i), "/k", "v")
				}
			})
		})
	}
}

// checkRefused tries what is refused while the named server is full, and what is not.
func checkRefused(t *testing.T, s *raftstore.Store, full string) {
	t.Helper()
	_, err := s.Propose(t.Context(), userPut("/new"))
	if !errors.Is(err, raftstore.ErrNoSpace) || !strings.Contains(err.Error(), full+" has 10 MiB free and needs 62 MiB") {
		t.Errorf("put: %v", err)
	}
	needed := userPut("/lease")
	needed.Essential = true
	if _, err := s.Propose(t.Context(), needed); err != nil {
		t.Errorf("essential put: %v", err)
	}
	removal := command.Command{Ops: []command.Op{{Kind: command.Delete, Key: "/lease"}}}
	if _, err := s.Propose(t.Context(), removal); err != nil {
		t.Errorf("deletion: %v", err)
	}
}

// A server that is full and dead has no say.
func TestFullServerThatDiedHindersNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		leader := c.Leader()
		dead := others(leader)[0]
		c.SetSpace(dead, full)
		time.Sleep(roomNews)
		checkRefused(t, c.Store(leader), c.Store(dead).Status().Name)
		c.Crash(dead)
		time.Sleep(20 * time.Second)
		mustPut(t, c.Store(leader), "/k", "v")
	})
}
