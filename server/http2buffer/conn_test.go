package http2buffer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// wire remembers each write.
type wire struct {
	secured
	mu     sync.Mutex
	writes [][]byte
	err    error
}

func (w *wire) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, bytes.Clone(p))
	return len(p), nil
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes)
}

func (w *wire) Close() error { return nil }

// frame returns one frame as http2 writes it.
func frame(t *testing.T, write func(*http2.Framer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(http2.NewFramer(&b, nil)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func headers(t *testing.T, endStream bool) []byte {
	return frame(t, func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("status"), EndHeaders: true, EndStream: endStream})
	})
}

func data(t *testing.T, size int) []byte {
	return frame(t, func(f *http2.Framer) error { return f.WriteData(1, true, make([]byte, size)) })
}

func TestWhatLeavesTogether(t *testing.T) {
	full, long := make([]byte, pieceBytes), data(t, heldMaxBytes)
	for name, c := range map[string]struct {
		pieces [][]byte
		want   []int // the length of each write
	}{
		"an answer":           {[][]byte{headers(t, false), data(t, 100)}, []int{15 + 109}},
		"one without a body":  {[][]byte{headers(t, true), data(t, 100)}, []int{15, 109}},
		"events":              {[][]byte{data(t, 10), data(t, 20)}, []int{19, 29}},
		"a flush of some KiB": {[][]byte{full, full, data(t, 10)}, []int{2*pieceBytes + 19}},
		"a long answer":       {[][]byte{headers(t, false), long, long, data(t, 0)}, []int{heldMaxBytes, heldMaxBytes, 15 + 3*frameHeaderBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // else a slow machine takes holdMax between two pieces
				w := &wire{}
				conn := &conn{secured: w}
				for _, p := range c.pieces {
					if n, err := conn.Write(p); n != len(p) || err != nil {
						t.Fatalf("Write = %d, %v", n, err)
					}
				}
				var got []int
				for _, text := range w.writes {
					got = append(got, len(text))
				}
				if !slices.Equal(got, c.want) || !bytes.Equal(slices.Concat(w.writes...), slices.Concat(c.pieces...)) {
					t.Errorf("writes of %v bytes, want %v", got, c.want)
				}
			})
		})
	}
}

// TestNothingWaitsForLong: headers without a body leave after holdMax, once.
func TestNothingWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		conn := &conn{secured: w}
		for want := range 3 {
			if _, err := conn.Write(headers(t, false)); err != nil || w.count() != want {
				t.Fatalf("%d writes at once, %v", w.count(), err)
			}
			time.Sleep(holdMax)
			synctest.Wait()
		}
		if w.count() != 3 {
			t.Errorf("%d writes", w.count())
		}
	})
}

// TestEverythingLeavesInOrder: whatever is written, and whenever, arrives as it was.
func TestEverythingLeavesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := &wire{}
			conn := &conn{secured: w}
			var want []byte
			for range random.IntN(50) {
				piece := [][]byte{headers(t, false), data(t, random.IntN(3*heldMaxBytes)), make([]byte, pieceBytes)}[random.IntN(3)]
				want = append(want, piece...)
				if _, err := conn.Write(piece); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(random.Int64N(int64(2 * holdMax))))
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(slices.Concat(w.writes...), want) {
				t.Fatalf("seed %d: other bytes", seed)
			}
		}
	})
}

// TestAFailureShowsAtTheNextWrite: nobody waited for what was held.
func TestAFailureShowsAtTheNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &conn{secured: &wire{err: net.ErrClosed}}
		if _, err := conn.Write(headers(t, false)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(holdMax)
		synctest.Wait()
		if _, err := conn.Write(data(t, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write = %v", err)
		}
	})
}
