package raftstore_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// noteTime is how long, in fake time, servers take to write down who the members are.
const noteTime = 10 * time.Second

// waits checks for a while that a server takes no part in any cluster.
func waits(t *testing.T, c *raftstoretest.Cluster, servers ...int) {
	t.Helper()
	for range 60 {
		time.Sleep(time.Second)
		for _, i := range servers {
			if s := c.Store(i).Status(); s.Phase == "held" || s.LeaderID != "" || s.Term > 1 {
				t.Fatalf("%s takes part: %+v", s.Name, s)
			}
		}
	}
}

// TestServersThatLostTheirDisksFoundNothing: of three, two come back without their data, and the third, which has
// everything that was acknowledged, later.
func TestServersThatLostTheirDisksFoundNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})).With("at", cfg.Name)
		})
		defer c.Close()
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		for i := range 3 {
			c.Crash(i)
		}
		c.Wipe(0)
		c.Wipe(1)
		c.Restart(0)
		c.Restart(1)
		waits(t, c, 0, 1)
		if told := log.with("at=server-1", "founded before", "the trust folder", "remove that file"); len(told) < 1 || len(told) > 4 {
			t.Errorf("server-1 says %d times why it waits:\n%s", len(told), log.text.String())
		}
		c.Restart(2)
		waits(t, c, 0, 1)
		if s := c.Store(2).Status(); s.Phase != "held" || s.LastIndex == 0 {
			t.Errorf("server-3, which has all data, is %+v", s)
		}
	})
}

// moveOn makes the members of a cluster of three the servers 3, 4 and 5. 1 and 2 are removed and stopped.
func moveOn(t *testing.T, c *raftstoretest.Cluster) {
	t.Helper()
	mustPut(t, c.Store(c.Leader()), "/k", "v")
	for _, name := range []string{"server-4", "server-5"} {
		i := c.Join(name)
		if err := c.Store(0).AddMember(t.Context(), name, name); err != nil {
			t.Fatal(err)
		}
		settled(t, c, i+1)
	}
	time.Sleep(noteTime)
	for i, name := range []string{"server-1", "server-2"} {
		c.Stop(i)
		if err := c.Store(3).RemoveMember(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(noteTime)
}

// TestRemovedServersFoundNothing: they start without data and with the list of old, while the one member that the list has
// is down. They find the cluster that lives by their trust folders, and wait to be added to it.
func TestRemovedServersFoundNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		moveOn(t, c)
		c.Crash(2)
		for i := range 2 {
			c.Wipe(i)
			c.Restart(i)
		}
		waits(t, c, 0, 1)
		mustPut(t, c.Store(3), "/after", "v")
		if phase := c.Store(0).Status().Phase; phase != "joining" {
			t.Errorf("server-1 is %s", phase)
		}
		c.Restart(2)
		if err := c.Store(3).AddMember(t.Context(), "server-1", "server-1"); err != nil {
			t.Error(err)
		}
		if got := mustRead(t, c.Store(0), "/after"); got != "v" {
			t.Errorf("added again it reads %q", got)
		}
	})
}

// TestAWipedMemberFindsThoseThatLive, although its list names itself and servers that are gone.
func TestAWipedMemberFindsThoseThatLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		moveOn(t, c)
		c.Crash(2)
		c.Wipe(2)
		c.Restart(2)
		members := settled(t, c, 3)
		if id := idOf(t, members, "server-3"); id == "server-3" {
			t.Error("it votes under an id that has voted")
		}
		if got := mustRead(t, c.Store(2), "/k"); got != "v" {
			t.Errorf("it reads %q", got)
		}
	})
}

// TestARemovedServerSaysSo and stops, whether it ran when it was removed or not.
func TestARemovedServerSaysSo(t *testing.T) {
	for name, down := range map[string]bool{"while it was down": true, "while it ran": false} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
				gone := others(c.Leader())[0]
				if down {
					c.Stop(gone)
				}
				if err := c.Store(c.Leader(others(gone)...)).RemoveMember(t.Context(), c.Name(gone)); err != nil {
					t.Fatal(err)
				}
				if down {
					c.Restart(gone)
				}
				time.Sleep(20 * time.Second)
				if err := c.Fatal(gone); !errors.Is(err, raftstore.ErrRemoved) {
					t.Errorf("it says %v", err)
				}
				c.Forgive(gone)
				mustPut(t, c.Store(others(gone)[0]), "/k", "v")
			})
		})
	}
}

// TestAServerWithoutAMajorityWasNotRemoved: nobody who could know says so.
func TestAServerWithoutAMajorityWasNotRemoved(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		c.Crash(1)
		c.Crash(2)
		time.Sleep(time.Minute)
		c.Restart(1)
		if got := mustRead(t, c.Store(0), "/k"); got != "v" {
			t.Errorf("read %q", got)
		}
	})
}

// TestFoundingThatCannotBeWrittenDownIsNone. Once it can be, it goes on with the same disks.
func TestFoundingThatCannotBeWrittenDownIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readOnly := errors.New("read-only file system")
		c := raftstoretest.NewCluster(t, 3, nil)
		defer c.Close()
		for i := range 3 {
			c.Trust(i).Fail(readOnly)
			c.Restart(i)
		}
		time.Sleep(5 * time.Second)
		for i := range 3 {
			if err := c.Fatal(i); !errors.Is(err, readOnly) || c.Store(i).Status().Term != 0 {
				t.Errorf("%s: %v, in term %d", c.Name(i), err, c.Store(i).Status().Term)
			}
			c.Stop(i)
			c.Trust(i).Fail(nil)
		}
		restartAll(c)
		for _, m := range settled(t, c, 3) {
			if m.ID != m.Name {
				t.Errorf("%s is back as %s", m.Name, m.ID)
			}
		}
	})
}

// TestFoundersMayShareATrustFolder, as with Docker Compose: the record of the first does not stop the others.
func TestFoundersMayShareATrustFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared raftstoretest.TrustFolder
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Founded = &shared })
		defer c.Close()
		for _, m := range settled(t, c, 3) {
			if m.ID != m.Name {
				t.Errorf("%s takes part as %s", m.Name, m.ID)
			}
		}
		time.Sleep(noteTime)
		for i := range 3 {
			c.Crash(i)
			c.Wipe(i)
		}
		restartAll(c)
		waits(t, c, 0, 1, 2)
		// What an operator does who wants an empty cluster.
		shared.Forget()
		mustPut(t, c.Store(c.Leader()), "/anew", "v")
	})
}

// later is a server's view of a shared trust folder. A server that founds reads the record twice at one time, when it decides and when it
// writes: here the second read comes later.
type later struct {
	*raftstoretest.TrustFolder
	by   time.Duration
	last time.Time
}

func (f *later) Load() ([]byte, error) {
	if time.Now().Equal(f.last) {
		time.Sleep(f.by)
	}
	f.last = time.Now()
	return f.TrustFolder.Load()
}

// TestTwoMajoritiesAtOnce: of three servers each sees another majority, and two of them found the cluster at the same time, with one
// record. The second has not voted: it takes part under its own name all the same, and so does who was counted by the first. It may also
// have crashed between its marker and the record.
func TestTwoMajoritiesAtOnce(t *testing.T) {
	for name, crashes := range map[string]bool{"second refused": false, "second crashes": true} {
		t.Run(name, func(t *testing.T) { twoMajorities(t, crashes) })
	}
}

func twoMajorities(t *testing.T, crashes bool) {
	synctest.Test(t, func(t *testing.T) {
		var shared raftstoretest.TrustFolder
		// Both decide before server 2 writes, and server 1 writes last.
		writes := map[string]time.Duration{"server-1": 400 * time.Millisecond, "server-2": 200 * time.Millisecond}
		c := raftstoretest.NewCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Founded = &later{TrustFolder: &shared, by: writes[cfg.Name]}
		})
		defer c.Close()
		// Server 1 counts 3, server 2 counts 1, server 3 nobody.
		for _, cut := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 1}} {
			c.Refuse(cut[0], cut[1])
		}
		for i := range 3 {
			c.Restart(i)
		}
		if crashes {
			for _, err := shared.Load(); err != nil; _, err = shared.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			c.Crash(0) // it is about to read what server 2 has just written
			c.Restart(0)
		}
		time.Sleep(noteTime)
		record, err := shared.Load()
		if err != nil || !strings.Contains(string(record), `"server-2": "`) || strings.Contains(string(record), `"server-3": "`) {
			t.Fatalf("not the race that is played here: %v, %s", err, record)
		}
		for i := range 3 {
			if err := c.Fatal(i); err != nil {
				t.Fatalf("%s: %v", c.Name(i), err)
			}
		}
		for _, cut := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 1}} {
			c.Allow(cut[0], cut[1])
		}
		members := settled(t, c, 3)
		for _, name := range []string{"server-1", "server-2"} {
			if id := idOf(t, members, name); id != name {
				t.Errorf("%s takes part as %s", name, id)
			}
		}
	})
}

// TestALoneServerIsFoundedOnce: without its data it does not start.
func TestALoneServerIsFoundedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 1, nil)
		defer c.Close()
		mustPut(t, c.Store(0), "/k", "v")
		c.Crash(0)
		c.Restart(0)
		c.Stop(0)
		c.Wipe(0)
		if err := c.Try(0); !errors.Is(err, founded.ErrBefore) {
			t.Errorf("it starts empty: %v", err)
		}
		c.Trust(0).Forget()
		c.Restart(0)
		mustPut(t, c.Store(0), "/anew", "v")
	})
}

// TestDataOfAnOlderReleaseGetARecord with their first start.
func TestDataOfAnOlderReleaseGetARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, nil)
		defer c.Close()
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		for i := range 3 {
			c.Crash(i)
			c.Trust(i).Forget()
		}
		restartAll(c)
		for i := range 3 {
			c.Crash(i)
			c.Wipe(i)
		}
		restartAll(c)
		waits(t, c, 0, 1, 2)
	})
}
