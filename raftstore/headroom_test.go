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

// A disk that is nearly full, whosever it is, keeps nothing away from anybody: the lead
// goes to a server that has room.
func TestOneFullDiskHindersNobody(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := raftstoretest.StartCluster(t, 3, nil)
				defer c.Close()
				at := c.Leader()
				if who == "follower" {
					at = others(at)[0]
				}
				c.SetSpace(at, full)
				time.Sleep(roomNews)
				for i := range c.Size() {
					mustPut(t, c.Store(i), "/k", "v")
				}
				if c.Leader() == at {
					t.Error("the server whose disk is full leads")
				}
				if space := c.Store(at).Status().Space; !space.Low || space.Full {
					t.Errorf("it says of itself: %+v", space)
				}
			})
		})
	}
}

// With two of three disks nearly full user writes are refused everywhere, and nothing
// else is. With room again on one of them, writes go on by themselves.
func TestTwoFullDisksRefuseUserWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		at := c.Leader()
		also := others(at)[0]
		c.SetSpace(at, full)
		c.SetSpace(also, full)
		time.Sleep(roomNews)
		for i := range c.Size() {
			checkRefused(t, c.Store(i), c.Name(at), c.Name(also))
		}
		c.SetSpace(at, roomy)
		time.Sleep(roomNews)
		for i := range c.Size() {
			mustPut(t, c.Store(i), "/k", "v")
		}
	})
}

// checkRefused tries what is refused while the named servers are full, and what is not.
func checkRefused(t *testing.T, s *raftstore.Store, full ...string) {
	t.Helper()
	_, err := s.Propose(t.Context(), userPut("/new"))
	if !errors.Is(err, raftstore.ErrNoSpace) {
		t.Errorf("put: %v", err)
	}
	for _, name := range full {
		if err != nil && !strings.Contains(err.Error(), name+" has 10 MiB free and needs 62 MiB") {
			t.Errorf("put: %v, which does not name %s", err, name)
		}
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

// With one of three dead each write needs the disk that is full. Once the full one is
// dead instead, it has no say.
func TestAFullDiskThatIsNeededCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		leader := c.Leader()
		low, dead := others(leader)[0], others(leader)[1]
		c.SetSpace(low, full)
		c.Crash(dead)
		time.Sleep(20 * time.Second)
		checkRefused(t, c.Store(leader), c.Name(low))
		c.Restart(dead)
		time.Sleep(roomNews)
		mustPut(t, c.Store(leader), "/k", "v")
		c.Crash(low)
		time.Sleep(20 * time.Second)
		mustPut(t, c.Store(leader), "/k", "v")
	})
}

// A follower without any room takes no entries and says so. The others write on, and
// delete their logs behind snapshots; with room again it gets all it missed.
func TestAFollowerWithoutRoomWaitsAndCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.SnapshotBytes = 64 << 10 })
		defer c.Close()
		leader := c.Leader()
		at := others(leader)[0]
		mustPut(t, c.Store(at), "/before", "v")
		c.SetSpace(at, replica.Space{FreeBytes: 1 << 20, TotalBytes: roomy.TotalBytes})
		time.Sleep(roomNews)
		before := c.Store(at).Status().LastIndex
		for range 600 {
			mustPut(t, c.Store(leader), "/k", strings.Repeat("v", 1024))
		}
		time.Sleep(20 * time.Second)
		status := c.Store(at).Status()
		if !status.Space.Full || status.LastIndex != before {
			t.Errorf("full %v, log to %d, it was to %d", status.Space.Full, status.LastIndex, before)
		}
		if c.Store(leader).Status().SnapshotIndex < before+300 {
			t.Error("the leader keeps its log for the server that is full")
		}
		c.SetSpace(at, roomy)
		time.Sleep(20 * time.Second)
		if c.Store(at).Status().Space.Full || c.StateHash(at) != c.StateHash(leader) {
			t.Errorf("it does not catch up: %+v", c.Store(at).Status())
		}
	})
}
