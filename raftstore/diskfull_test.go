package raftstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
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

// fillUp writes a file until nothing more fits, and returns how to remove it.
func fillUp(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for {
		if _, err := file.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody else fills the disk of one server: the others hear of it, deletions
// pass, and with room again so do writes.
func TestDiskFilledByOthers(t *testing.T) {
	dirs := mountSmallDisks(t, 3)
	c := startOnSocketsIn(t, dirs)
	leader := c.leader(t)
	mustPut(t, leader, "/k", "v")
	others := filepath.Join(dirs[1], "others")
	fillUp(t, others)
	refusedSoon(t, leader, "server-2")
	for range 200 {
		remove(t, leader, "/k")
		needed := put("/k", "v")
		needed.Essential = true
		if _, err := leader.Propose(t.Context(), needed); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(others); err != nil {
		t.Fatal(err)
	}
	putSoon(t, leader, "/after")
}

// refusedSoon waits until user writes are refused because of the named server.
func refusedSoon(t *testing.T, s *raftstore.Store, server string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		_, err := s.Propose(t.Context(), put("/probe", "v"))
		if errors.Is(err, raftstore.ErrNoSpace) && strings.Contains(err.Error(), server) {
			return
		}
	}
	t.Fatalf("writes are taken while the disk of %s is full", server)
}

// When even the reserve is gone, the server stops, before it would answer for what
// is not on its disk. The others go on without it; with room again it comes back.
func TestFullDiskStopsItsServerOnly(t *testing.T) {
	dirs := mountSmallDisks(t, 3)
	c := startOnSocketsIn(t, dirs)
	stopped := make(chan error, 1)
	c.fatal = func(i int, err error) {
		if i == 1 {
			stopped <- err
		} else {
			t.Errorf("server %d: %v", i, err)
		}
	}
	c.leader(t)
	acknowledged := 0
	others := filepath.Join(dirs[1], "others")
	for stop := false; !stop; {
		fillUp(t, others)
		needed := put(fmt.Sprintf("/k/%d", acknowledged), string(make([]byte, fillBytes)))
		needed.Essential = true
		if _, err := c.stores[0].Propose(t.Context(), needed); err != nil {
			t.Fatal(err)
		}
		acknowledged++
		select {
		case err := <-stopped:
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			stop = true
		default:
		}
	}
	c.stop(t, 1)
	meanwhile := put("/meanwhile", "v")
	meanwhile.Essential = true
	if _, err := c.stores[0].Propose(t.Context(), meanwhile); err != nil {
		t.Errorf("the others: %v", err)
	}
	if err := os.Remove(others); err != nil {
		t.Fatal(err)
	}
	c.open(t, 1)
	for i := range acknowledged {
		if got := mustRead(t, c.stores[1], fmt.Sprintf("/k/%d", i)); len(got) != fillBytes {
			t.Fatalf("object %d has %d bytes", i, len(got))
		}
	}
	putSoon(t, c.stores[1], "/after")
}
