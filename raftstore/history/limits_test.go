package history_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestOvertaken: what left the store before it was kept is a hole, and so said; what it does not hide is answered.
func TestOvertaken(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 200 << 10}), t.TempDir()
	h, end := openHistory(t, store, dir, nil)
	write(t, store, r, 1, 10)
	for range 50 {
		write(t, store, r, 10, 100)
	}
	before := store.Root().Revision
	if _, err := h.At(t.Context(), key(0), before); err != nil { // it has all
		t.Fatal(err)
	}
	end()
	for range 500 {
		write(t, store, r, 10, 3000)
	}
	h, _ = openHistory(t, store, dir, nil)
	_, err := h.At(t.Context(), "/core/pods/", before)
	var hole *history.Hole
	if !errors.As(err, &hole) || hole.After != before || hole.Until < before+100 {
		t.Errorf("a list over the hole: %v", err)
	}
	if s := h.Status(); len(s.Holes) != 1 || s.Oldest != 0 || s.Newest != store.Root().Revision {
		t.Errorf("%+v", s)
	}
	if _, err := h.At(t.Context(), "/core/pods/", hole.Until); err != nil {
		t.Errorf("behind the hole: %v", err)
	}
}

// TestWhatIsTrimmed: by age, by size, and all of it where the disk is crowded; what is left is right, and the rest is too old.
func TestWhatIsTrimmed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.Config)
		ages   bool
	}{
		"size":    {change: func(c *history.Config) { c.SizeBytes, c.FileBytes = 2<<20, 256<<10 }},
		"age":     {change: func(c *history.Config) { c.Retention = time.Hour }, ages: true},
		"crowded": {change: func(c *history.Config) { c.FileBytes = 256 << 10 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var crowded atomic.Bool
				store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
				h, end := openHistory(t, store, dir, func(config *history.Config) {
					config.Crowded = crowded.Load
					c.change(config)
				})
				defer end()
				r := rand.New(rand.NewPCG(9, 10))
				for range 20 {
					for range 100 {
						write(t, store, r, 50, 5000)
					}
					if c.ages {
						time.Sleep(10 * time.Minute)
					}
				}
				crowded.Store(name == "crowded")
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				s := h.Status()
				if name == "crowded" {
					files, err := filepath.Glob(filepath.Join(dir, "*"))
					if err != nil || len(files) > 0 || s.Bytes != 0 {
						t.Errorf("%v %v %+v", files, err, s)
					}
					crowded.Store(false)
					for range 200 {
						write(t, store, r, 50, 5000)
					}
					same(t, h, store, "/core/pods/", store.Root().Revision-100)
					return
				}
				if s.Oldest == 0 || s.Bytes > 2<<20 && name == "size" || c.ages && time.Since(s.Since) > 2*time.Hour {
					t.Errorf("%+v", s)
				}
				if _, err := h.At(t.Context(), "/core/pods/", s.Oldest-1); !errors.Is(err, history.ErrTooOld) {
					t.Errorf("before the oldest: %v", err)
				}
				same(t, h, store, "/core/pods/", s.Oldest)
				at, err := h.RevisionAt(t.Context(), time.Now())
				if err != nil || at != store.Root().Revision {
					t.Errorf("now is %d, %v, not %d", at, err, store.Root().Revision)
				}
			})
		})
	}
}
