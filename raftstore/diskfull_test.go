package raftstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
)

const (
	// smallDiskMiB is the size of a disk that fills within seconds.
	smallDiskMiB = 128
	// fillBytes is the size of an object that fills it.
	fillBytes = 128 << 10
	// fillersMax is more than fits.
	fillersMax = 2000
)

// mountSmallDisks returns directories, each on a small file system of its own.
func mountSmallDisks(t *testing.T, n int) (dirs []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	for range n {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", smallDiskMiB)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
		dirs = append(dirs, dir)
	}
	return dirs
}

// fillers writes objects that do not compress, through all servers, until each
// writer is refused. It returns the keys that were acknowledged.
func fillers(t *testing.T, c *socketCluster) (keys []string) {
	t.Helper()
	var mu sync.Mutex
	var writing sync.WaitGroup
	for w := range c.stores {
		writing.Go(func() {
			value := make([]byte, fillBytes)
			rand.Read(value)
			value[0] = command.EncodingJSON
			for i := range fillersMax {
				key := fmt.Sprintf("/fill/%d/%04d", w, i)
				_, err := c.stores[w].Propose(t.Context(), put(key, string(value)))
				if errors.Is(err, raftstore.ErrNoSpace) {
					return
				}
				if err != nil {
					t.Errorf("write %s: %v", key, err)
					return
				}
				mu.Lock()
				keys = append(keys, key)
				mu.Unlock()
			}
			t.Error("the disk is never full")
		})
	}
	writing.Wait()
	return keys
}

// putSoon writes as soon as writes are taken again.
func putSoon(t *testing.T, s *raftstore.Store, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.Propose(ctx, put(key, "v"))
		if err == nil {
			return
		}
		if !errors.Is(err, raftstore.ErrNoSpace) {
			t.Fatalf("put %s: %v", key, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("refused to the end: %v", err)
		}
	}
}

func remove(t *testing.T, s *raftstore.Store, key string) {
	t.Helper()
	result, err := s.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.Delete, Key: key}}})
	if err != nil || result.Code != command.OK {
		t.Fatalf("deleting %s: %v %v", key, result, err)
	}
}

// Three servers on small disks are filled until they take no more. Nothing stops,
// nothing is lost, and deleting makes room.
func TestSmallDisksFillAndHeal(t *testing.T) {
	c := startOnSocketsIn(t, mountSmallDisks(t, 3))
	c.leader(t)
	keys := fillers(t, c)
	t.Logf("%d MiB acknowledged on disks of %d MiB", len(keys)*fillBytes>>20, smallDiskMiB)
	for i, key := range keys {
		if got := mustRead(t, c.stores[i%3], key); len(got) != fillBytes {
			t.Fatalf("%s has %d bytes", key, len(got))
		}
	}
	needed := put("/lease", "v")
	needed.Essential = true
	for i := range c.stores {
		if _, err := c.stores[i].Propose(t.Context(), needed); err != nil {
			t.Errorf("essential write: %v", err)
		}
	}
	for i, key := range keys[len(keys)/8:] {
		remove(t, c.stores[i%3], key)
	}
	putSoon(t, c.follower(t), "/after")
}

// fillUp takes all that is free on a disk, in one call: the reserve that a server gives back
// then is the server's. A file that goes on growing would take that too, and a server whose
// disk has nothing left for its log stops.
func fillUp(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for {
		space, err := diskreserve.FreeSpace(path)
		if err != nil {
			t.Fatal(err)
		}
		if space.FreeBytes == 0 {
			return
		}
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		// The server may have written in between.
		err = syscall.Fallocate(int(file.Fd()), 0, info.Size(), space.FreeBytes)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// Somebody else fills the disks of two servers. With one full the others do not notice,
// and it does not lead; with two, user writes are refused and deletions pass. With room again on
// one of them writes go on.
func TestDisksFilledByOthers(t *testing.T) {
	dirs := mountSmallDisks(t, 3)
	c := startOnSocketsIn(t, dirs)
	leader := c.leader(t)
	at := slices.Index(c.stores, leader)
	also := (at + 1) % 3
	mustPut(t, leader, "/k", "v")
	fillUp(t, filepath.Join(dirs[at], "others"))
	waitFor(t, "another leads", func() bool { return !leader.Leadership().Leader && leader.Leadership().Ready })
	for i := range 200 {
		mustPut(t, c.stores[i%3], "/k", "v")
	}
	fillUp(t, filepath.Join(dirs[also], "others"))
	waitFor(t, "user writes are refused", func() bool {
		_, err := leader.Propose(t.Context(), put("/probe", "v"))
		return errors.Is(err, raftstore.ErrNoSpace) && strings.Contains(err.Error(), c.servers[at].ID) && strings.Contains(err.Error(), c.servers[also].ID)
	})
	for range 200 {
		remove(t, leader, "/k")
		needed := put("/k", "v")
		needed.Essential = true
		if _, err := leader.Propose(t.Context(), needed); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dirs[at], "others")); err != nil {
		t.Fatal(err)
	}
	putSoon(t, leader, "/after")
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("%s: not after 30 s", what)
}

// When even the reserve is gone, the server takes nothing more, before it would answer
// for what is not on its disk, nor after it was started again. The others go on, with writes of
// users too; with room again it catches up by itself.
func TestAServerWithoutAnyRoomWaits(t *testing.T) {
	dirs := mountSmallDisks(t, 3)
	c := startOnSocketsIn(t, dirs)
	leader := c.leader(t)
	at := (slices.Index(c.stores, leader) + 1) % 3
	others := filepath.Join(dirs[at], "others")
	value := string(make([]byte, fillBytes))
	// Nothing is written while the disk is being filled: that may stop the server.
	settled := func() bool {
		s := c.stores[at].Status()
		return s.Space.Full || s.LastIndex >= leader.Status().LastIndex
	}
	mustPut(t, leader, "/k", "v")
	waitFor(t, "the start is over", func() bool { return leader.Status().FeatureLevel == raftstore.FeatureLevel && settled() })
	written := 0
	for ; written < 30 || !c.stores[at].Status().Space.Full; written++ {
		fillUp(t, others)
		mustPut(t, leader, fmt.Sprintf("/k/%d", written%100), value)
		waitFor(t, "it has the write, or takes none", settled)
		if written > fillersMax {
			t.Fatal("the disk is never full")
		}
	}
	behind := c.stores[at].Status().LastIndex
	for i := range 30 {
		mustPut(t, leader, fmt.Sprintf("/k/%d", i), value)
	}
	if now := c.stores[at].Status(); now.LastIndex != behind || now.Failure != nil {
		t.Errorf("the log went from %d to %d on a full disk, failure %v", behind, now.LastIndex, now.Failure)
	}
	c.stop(t, at)
	c.open(t, at)
	waitFor(t, "it waits again", func() bool { return c.stores[at].Status().Space.Full })
	if err := os.Remove(others); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it catches up", func() bool { return c.stores[at].Status().LastIndex >= leader.Status().CommitIndex })
	for i := range 30 {
		if got := mustRead(t, c.stores[at], fmt.Sprintf("/k/%d", i)); len(got) != fillBytes {
			t.Fatalf("object %d has %d bytes", i, len(got))
		}
	}
}
