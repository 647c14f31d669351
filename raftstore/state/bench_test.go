package state_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const benchObjects, benchValueBytes = 100_000, 1500

func benchKey(i int) string { return fmt.Sprintf("pods/default/pod-%06d", i%benchObjects) }

func benchState(b *testing.B) *log {
	b.Helper()
	l := newLog(state.Options{})
	for i := 0; i < benchObjects; i += 500 {
		l.apply(benchBatch(i, 500)...)
	}
	return l
}

func benchBatch(from, n int) []command.Command {
	var batch []command.Command
	for i := from; i < from+n; i++ {
		op := command.Op{Kind: command.Put, Key: benchKey(i * 7919), Value: make([]byte, benchValueBytes)}
		batch = append(batch, command.Command{Ops: []command.Op{op}})
	}
	return batch
}

// BenchmarkApply puts into a store of 100,000 objects of 1.5 KiB; ns/op is for
// one entry.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			l := benchState(b)
			batch := benchBatch(0, n)
			for b.Loop() {
				l.apply(batch...)
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	root := benchState(b).Root()
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = benchKey(i * 97)
	}
	i := 0
	for b.Loop() {
		root.Get(keys[i%len(keys)])
		i++
	}
}

func BenchmarkSnapshot(b *testing.B) {
	l := benchState(b)
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot()
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Snapshot().WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	snapshot := snapshotOf(b, l.State)
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			if _, err := state.Verify(bytes.NewReader(snapshot)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRootAt rebuilds a root 1,000 changes ago.
func BenchmarkRootAt(b *testing.B) {
	l := benchState(b)
	last := l.Root().Revision
	i := uint64(0)
	for b.Loop() {
		if _, err := l.RootAt(last - 1000 - i%100); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
