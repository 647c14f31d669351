package raftstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
)

const (
	// bigObjects of bigValueBytes make a snapshot of 300 MiB.
	bigObjects, bigValueBytes = 200_000, 1500
	// steadyRate is the load under which snapshots are measured, in writes/s.
	steadyRate = 1500
	// snapshotsMeasured of the whole state end the measurement.
	snapshotsMeasured = 2
	// appliesKept is of how many entries Status.ApplyMax tells.
	appliesKept = 1024
	// truncationLag is how long after a snapshot its consequences may still show.
	truncationLag = 2 * time.Second
)

// benchValue does not compress, as little in a store does.
func benchValue(size int) []byte {
	value := make([]byte, size)
	random := rand.New(rand.NewPCG(1, uint64(size)))
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	value[0] = command.EncodingJSON
	return value
}

func benchPut(ctx context.Context, s *raftstore.Store, i int, value []byte) error {
	op := command.Op{Kind: command.Put, Key: fmt.Sprintf("/registry/pods/default/pod-%06d", i), Value: value}
	_, err := s.Propose(ctx, command.Command{Ops: []command.Op{op}})
	return err
}

// writeMany has so many writers put n objects, in turn below limit.
func writeMany(b *testing.B, s *raftstore.Store, writers, n, limit, size int) {
	b.Helper()
	value := benchValue(size)
	var next atomic.Int64
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := benchPut(b.Context(), s, i*7919%limit, value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
}

// measureFsync appends 4 KiB and syncs, n times, and returns the median.
func measureFsync(b *testing.B, n int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "fsync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block, took := benchValue(4096), make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[n/2]
}

// cpuTime is what this process has taken, all replicas and writers together.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkStore measures committed writes of 1 KiB by 256 writers on the leader
// of three replicas that share this machine's disk. F is how often in a second
// that disk appends 4 KiB and syncs, 1/p50, measured before and after.
func BenchmarkStore(b *testing.B) {
	const writers, keys, fsyncs = 256, 10_000, 500
	before := measureFsync(b, fsyncs)
	c := startOnSockets(b, 3)
	leader := c.leader(b)
	writeMany(b, leader, writers, keys, keys, 1024)
	cpu := cpuTime(b)
	b.ResetTimer()
	writeMany(b, leader, writers, b.N, keys, 1024)
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-us/write")
	rate := float64(b.N) / b.Elapsed().Seconds()
	f := 2 / (before + measureFsync(b, fsyncs)).Seconds()
	b.ReportMetric(rate, "writes/s")
	b.ReportMetric(f, "F/s")
	b.ReportMetric(rate/f, "xF")
}

// BenchmarkSnapshot measures commits under a steady load on three replicas of
// 200,000 objects, while each writes its snapshot of 300 MiB and truncates its log.
// One iteration is the whole measurement.
func BenchmarkSnapshot(b *testing.B) {
	for b.Loop() {
		c := startOnSockets(b, 3)
		leader := c.leader(b)
		writeMany(b, leader, 256, bigObjects, bigObjects, bigValueBytes)
		reportMemory(b)
		watching := watchSnapshots(c)
		calm, busy := steadyLoad(b, leader, watching)
		reportLatencies(b, "calm", calm)
		reportLatencies(b, "snapshot", busy)
		b.ReportMetric(watching.applies.Seconds()*1000, "apply-max-ms")
		b.ReportMetric(watching.longest.Seconds(), "snapshot-s")
	}
}

// reportMemory says what a replica of the three in this process takes.
func reportMemory(b *testing.B) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/3/(1<<20), "MiB/replica")
}

// snapshotWatch knows when a replica of the cluster is writing its snapshot.
type snapshotWatch struct {
	cluster *socketCluster
	// indexes are where each replica's last snapshot ends.
	indexes []uint64
	// from is the entry after which Status tells of nothing before the watch: snapshots
	// that end before it do not count.
	from uint64
	// began is when the snapshot that is being written was first seen, per replica.
	began   []time.Time
	quiet   time.Time
	done    int
	longest time.Duration
	applies time.Duration
}

func watchSnapshots(c *socketCluster) *snapshotWatch {
	w := &snapshotWatch{cluster: c, began: make([]time.Time, len(c.stores))}
	for _, s := range c.stores {
		status := s.Status()
		w.indexes = append(w.indexes, status.SnapshotIndex)
		w.from = max(w.from, status.AppliedIndex+appliesKept)
	}
	return w
}

// look says whether a snapshot is being written or its log truncated.
func (w *snapshotWatch) look(now time.Time) bool {
	for i, s := range w.cluster.stores {
		status := s.Status()
		counts := status.AppliedIndex > w.from
		if counts {
			w.applies = max(w.applies, status.ApplyMax)
		}
		writing, _ := filepath.Glob(filepath.Join(w.cluster.dirs[i], "snapshots", "*.tmp"))
		if len(writing) > 0 {
			w.quiet = now.Add(truncationLag)
			if w.began[i].IsZero() {
				w.began[i] = now
			}
		}
		if status.SnapshotIndex != w.indexes[i] {
			w.indexes[i] = status.SnapshotIndex
			w.quiet = now.Add(truncationLag)
			if counts {
				w.done++
			}
			if !w.began[i].IsZero() {
				w.longest = max(w.longest, now.Sub(w.began[i]))
			}
			w.began[i] = time.Time{}
		}
	}
	return now.Before(w.quiet)
}

// steadyLoad writes in an open loop until every replica took its snapshots, and
// returns the commit times beside and during them.
func steadyLoad(b *testing.B, s *raftstore.Store, w *snapshotWatch) (calm, busy []time.Duration) {
	const tick = 10 * time.Millisecond
	value := benchValue(bigValueBytes)
	var mu sync.Mutex
	var writing sync.WaitGroup
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for i := 0; w.done < snapshotsMeasured*len(w.cluster.stores); {
		now := <-ticker.C
		during := w.look(now)
		for range int(steadyRate * tick / time.Second) {
			key := i * 7919 % bigObjects
			i++
			writing.Go(func() {
				start := time.Now()
				if err := benchPut(b.Context(), s, key, value); err != nil {
					b.Error(err)
				}
				took := time.Since(start)
				mu.Lock()
				defer mu.Unlock()
				if during {
					busy = append(busy, took)
				} else {
					calm = append(calm, took)
				}
			})
		}
	}
	writing.Wait()
	return calm, busy
}

func reportLatencies(b *testing.B, name string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
		i := min(int(q.at*float64(len(took))), len(took)-1)
		b.ReportMetric(took[i].Seconds()*1000, name+"-"+q.name+"-ms")
	}
}

// BenchmarkRestart opens a server with 200,000 objects again, to its first
// linearizable read.
func BenchmarkRestart(b *testing.B) {
	c := startOnSockets(b, 1)
	writeMany(b, c.leader(b), 256, bigObjects, bigObjects, bigValueBytes)
	for b.Loop() {
		b.StopTimer()
		c.close(b)
		b.StartTimer()
		c.open(b, 0)
		leader := c.leader(b)
		root, err := leader.ReadIndex(b.Context())
		if err != nil || root.Len() < bigObjects {
			b.Fatalf("%d objects, error %v", root.Len(), err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/restart")
}
