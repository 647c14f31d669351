package raftstore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// archiveOf is a backup of a cluster with some objects.
func archiveOf(t *testing.T, c *raftstoretest.Cluster) []byte {
	t.Helper()
	mustPut(t, c.Store(c.Leader()), "/backed-up", "v")
	var archive bytes.Buffer
	if _, err := c.Store(0).Backup(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// restoreAll stops all servers and restores the archive on each, some time apart.
func restoreAll(t *testing.T, c *raftstoretest.Cluster, archive []byte) {
	t.Helper()
	for i := range c.Size() {
		c.Stop(i)
		c.Wipe(i)
	}
	for i := range c.Size() {
		time.Sleep(3 * time.Second)
		if _, err := c.Restore(i, archive); err != nil {
			t.Fatal(err)
		}
	}
}

// oneLife checks that all servers that are up have the same life, and returns it.
func oneLife(t *testing.T, c *raftstoretest.Cluster) string {
	t.Helper()
	settled(t, c, c.Size())
	life := c.Store(0).Status().Life
	for i := range c.Size() {
		if s := c.Store(i).Status(); s.Life != life || life == "" || c.Store(i).Root().Life != life {
			t.Errorf("%s has the life %q, its state %q, server-1 has %q", s.Name, s.Life, c.Store(i).Root().Life, life)
		}
	}
	return life
}

// TestTwoRestoresAreTwoLives: what the first gave out the second does not give out again,
// and a server of the first is refused by those of the second.
func TestTwoRestoresAreTwoLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})).With("at", cfg.Name)
		})
		defer c.Close()
		archive := archiveOf(t, c)
		founded := oneLife(t, c)
		restoreAll(t, c, archive)
		restartAll(c)
		first := oneLife(t, c)
		revision := mustPut(t, c.Store(0), "/first", "v")
		old := c.Store(0).Status()
		c.Stop(0)
		disk := c.CopyDisk(0)
		restoreAll(t, c, archive)
		restartAll(c)
		second := oneLife(t, c)
		if first == founded || second == first || second == founded {
			t.Errorf("lives %s, %s, %s", founded, first, second)
		}
		for i := range c.Size() {
			if _, err := c.Store(i).Watch("", revision); !errors.Is(err, watch.ErrCompacted) {
				t.Errorf("%s: a watch of the first life goes on: %v", c.Name(i), err)
			}
		}
		if s := c.Store(0).Status(); s.Term <= old.Term || s.LastIndex <= old.LastIndex || s.Revision <= revision || s.Revision > 1<<53 {
			t.Errorf("begins at %+v after %+v", s, old)
		}
		c.Crash(0)
		c.PutBack(0, disk)
		c.Restart(0)
		time.Sleep(time.Minute)
		if s := c.Store(0).Status(); s.Life != first || s.LeaderID != "" {
			t.Errorf("the server of the first life: %+v", s)
		}
		if _, ok := c.Store(0).Root().Get("/second"); ok {
			t.Error("the server of the first life has what the second wrote")
		}
		mustPut(t, c.Store(1), "/second", "v")
		for _, name := range []string{"server-1", "server-2"} {
			if told := log.with("at="+name, "another life of this cluster", first, second); len(told) < 1 || len(told) > 12 {
				t.Errorf("%s says %d times that they have different lives:\n%s", name, len(told), log.text.String())
			}
		}
	})
}

func restartAll(c *raftstoretest.Cluster) {
	for i := range c.Size() {
		c.Restart(i)
	}
}

// TestARestoreBeginsWithTheServerThatHasTheData, under whatever order they start.
func TestARestoreBeginsWithTheServerThatHasTheData(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		restoreAll(t, c, archiveOf(t, c))
		c.Restart(1)
		c.Restart(2)
		time.Sleep(10 * time.Second)
		for i := 1; i < 3; i++ {
			if s := c.Store(i).Status(); s.Phase != replica.Restored || s.Term != 0 {
				t.Errorf("without the data: %+v", s)
			}
		}
		c.Restart(0)
		for _, m := range settled(t, c, 3) {
			if m.ID != m.Name {
				t.Errorf("%s begins as %s", m.Name, m.ID)
			}
		}
		oneLife(t, c)
		if got := mustRead(t, c.Store(2), "/backed-up"); got != "v" {
			t.Errorf("read %q", got)
		}
		// Its vote counts: without one of the others the cluster serves.
		c.Crash(0)
		mustPut(t, c.Store(1), "/after", "v")
		c.Restart(0)
		settled(t, c, 3)
	})
}

// TestARestoredServerMayCrashWhileItBegins at any moment.
func TestARestoredServerMayCrashWhileItBegins(t *testing.T) {
	for moment := range 12 {
		inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
			restoreAll(t, c, archiveOf(t, c))
			restartAll(c)
			time.Sleep(time.Duration(moment*moment) * 4 * time.Millisecond)
			victim := moment % 3
			c.Crash(victim)
			time.Sleep(time.Second)
			c.Restart(victim)
			settled(t, c, 3)
			oneLife(t, c)
			if got := mustRead(t, c.Store(victim), "/backed-up"); got != "v" {
				t.Errorf("moment %d: read %q", moment, got)
			}
		})
	}
}

// TestAServerRestoredAnewVotesUnderANewID: it may have voted, and forgot.
func TestAServerRestoredAnewVotesUnderANewID(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		archive := archiveOf(t, c)
		restoreAll(t, c, archive)
		restartAll(c)
		oneLife(t, c)
		mustPut(t, c.Store(0), "/k", "v")
		c.Crash(1)
		c.Wipe(1)
		if _, err := c.Restore(1, archive); err != nil {
			t.Fatal(err)
		}
		c.Restart(1)
		if id := idOf(t, settled(t, c, 3), "server-2"); id == "server-2" {
			t.Error("it votes under an id that has voted")
		}
		oneLife(t, c)
		// The server with the data does not give them up for the life of the others.
		c.Crash(0)
		c.Wipe(0)
		restored, err := c.Restore(0, archive)
		if err != nil {
			t.Fatal(err)
		}
		c.Restart(0)
		time.Sleep(time.Minute)
		if s := c.Store(0).Status(); s.Phase != replica.Restored || s.Life != restored.Life {
			t.Errorf("restored beside a cluster it became %+v", s)
		}
		mustPut(t, c.Store(2), "/goes-on", "v")
	})
}

// TestARecoveryEndsTheFormerLife: those who come back with its data stop, and join with
// empty hands.
func TestARecoveryEndsTheFormerLife(t *testing.T) {
	inCluster(t, func(t *testing.T, c *raftstoretest.Cluster) {
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		former := oneLife(t, c)
		for i := range 3 {
			c.Stop(i)
		}
		recovered(t, c, 0)
		c.Restart(0)
		mustPut(t, c.Store(c.Leader(0)), "/recovered", "v")
		c.Restart(1)
		c.Restart(2)
		time.Sleep(30 * time.Second)
		for i := 1; i < 3; i++ {
			if err := c.Fatal(i); !errors.Is(err, replica.ErrLifeEnded) {
				t.Errorf("%s goes on with the data of the former life: %v", c.Name(i), err)
			}
			c.Forgive(i)
			c.Stop(i)
			c.Restart(i)
		}
		if life := oneLife(t, c); life == former {
			t.Error("the life is the former one")
		}
		if got := mustRead(t, c.Store(2), "/recovered"); got != "v" {
			t.Errorf("read %q", got)
		}
	})
}

// recovered makes a server that is down the beginning of the next life.
func recovered(t *testing.T, c *raftstoretest.Cluster, i int) {
	t.Helper()
	storage, err := c.Disk(i).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := replica.Examine(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	next := replica.NextLife{
		ServerID: stored.ServerID, Root: stored.Root, ClusterID: stored.ClusterID, Life: birth.Name(), FormerLife: stored.Root.Life,
		LastIndex: stored.LastIndex, LastTerm: stored.LastTerm, Begins: time.Now(),
	}
	for _, s := range stored.Servers {
		s.Voter = s.ID == stored.ServerID
		next.Servers = append(next.Servers, s)
	}
	if err := next.Replace(t.Context(), c.Disk(i)); err != nil {
		t.Fatal(err)
	}
}

// TestAClusterOfAnOlderReleaseGetsALife once all its servers know of lives.
func TestAClusterOfAnOlderReleaseGetsALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releases{levels: map[string]uint64{"server-1": 1, "server-2": 1, "server-3": 1}}
		c := raftstoretest.StartCluster(t, 3, r.configure)
		defer c.Close()
		mustPut(t, c.Store(0), "/k", "v")
		time.Sleep(settleTime)
		for i := range 3 {
			if s := c.Store(i).Status(); s.Life != "" {
				t.Fatalf("%s has the life %q too early", s.Name, s.Life)
			}
			c.Stop(i)
			r.install(c.Name(i), raftstore.FeatureLevel)
			c.Restart(i)
			time.Sleep(settleTime)
		}
		life := oneLife(t, c)
		// The marker knows it before anybody says how far the log is committed.
		for i := range 3 {
			c.Stop(i)
		}
		c.Restart(2)
		if got := c.Store(2).Status().Life; got != life {
			t.Errorf("started alone it has the life %q, it was %q", got, life)
		}
		c.Restart(0)
		c.Restart(1)
		if again := oneLife(t, c); again != life {
			t.Errorf("the life became %q", again)
		}
	})
}
