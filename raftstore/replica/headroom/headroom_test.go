package headroom

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
)

const mib = 1 << 20

func none() int64 { return 0 }

func TestHeadroomBytes(t *testing.T) {
	for _, tc := range []struct{ total, snapshot, logFree, want int64 }{
		{1 << 40, 0, 0, headroomMax},
		{10 << 30, 0, 0, 512 * mib},
		{10 << 30, 1 << 30, 0, 1<<30 + 256*mib + logGrowthBytes},
		{100 * mib, 0, 0, logGrowthBytes},
		{100 * mib, 0, 4 * mib, 12 * mib},
		{100 * mib, 8 * mib, 90 * mib, 10 * mib},
		{30 * mib, 0, 0, 15 * mib},
		{40 * mib, 100 * mib, 0, 20 * mib},
		{0, 0, 0, 0},
	} {
		if got := headroomBytes(tc.total, tc.snapshot, tc.logFree); got != tc.want {
			t.Errorf("total %d, snapshot %d: %d, want %d", tc.total, tc.snapshot, got, tc.want)
		}
	}
}

// Writes are refused below the headroom and taken again well above it.
func TestHeadroomHealsWithHysteresis(t *testing.T) {
	space := diskreserve.Space{TotalBytes: 1000 * mib}
	h := &Headroom{disk: Disk{Measure: func() (diskreserve.Space, error) { return space, nil }, SnapshotBytes: none, LogFreeBytes: none}}
	for _, step := range []struct {
		freeMiB int64
		low     bool
	}{{50, false}, {49, true}, {50, true}, {62, true}, {63, false}, {50, false}, {0, true}} {
		space.FreeBytes = step.freeMiB * mib
		if err := h.Look(); err != nil {
			t.Fatal(err)
		}
		if got := h.Status(); got.Low != step.low {
			t.Errorf("%d MiB free: %+v", step.freeMiB, got)
		}
	}
}

// While space is low, or the reserve is spent, entries of a leader are taken only if some
// room is left when they are written; the reserve counts as room.
func TestEntriesMustFit(t *testing.T) {
	for _, tc := range []struct {
		freeMiB, entryMiB int64
		held, fits        bool
	}{
		{100, 200, true, true}, // space is not low: nobody looks
		{20, 16, true, true},
		{0, 4, true, true}, // the reserve is 8 MiB
		{0, 5, true, false},
		{4, 0, false, true},
		{4, 1, false, false},
		{0, 0, false, false},
	} {
		space := diskreserve.Space{TotalBytes: 1000 * mib, FreeBytes: tc.freeMiB * mib}
		h := &Headroom{disk: Disk{Measure: func() (diskreserve.Space, error) { return space, nil }, SnapshotBytes: none, LogFreeBytes: none}}
		if err := h.Look(); err != nil {
			t.Fatal(err)
		}
		h.disk.Reserve = diskreserve.New(filepath.Join(t.TempDir(), "reserve"), 8*mib)
		if tc.held {
			if err := h.disk.Reserve.Make(); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.Fits(tc.entryMiB * mib); got != tc.fits || h.Status().Full == tc.fits {
			t.Errorf("%+v: %v, status %+v", tc, got, h.Status())
		}
		space.FreeBytes = 500 * mib
		if err := h.Look(); err != nil || h.Status().Full || !h.Fits(mib) {
			t.Errorf("%+v, with room again: %+v, %v", tc, h.Status(), err)
		}
	}
}

// The reserve is given back when nothing else is left, and taken when there is
// room; neither looks like a change of the room there is.
func TestReserveComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	others := int64(0) // what others have written
	h := &Headroom{disk: Disk{Reserve: diskreserve.New(path, 8*mib), SnapshotBytes: none, LogFreeBytes: none}}
	h.disk.Measure = func() (diskreserve.Space, error) {
		return diskreserve.Space{TotalBytes: 200 * mib, FreeBytes: 200*mib - others - size(path)}, nil
	}
	for _, step := range []struct {
		othersMiB, freeMiB int64
		low, held          bool
	}{
		{0, 192, false, true},
		{176, 16, false, true},
		{177, 15, true, true},
		{184, 8, true, true},
		{185, 7, true, false},
		{192, 0, true, false},
		{177, 15, true, false},
		{172, 20, false, true},
	} {
		others = step.othersMiB * mib
		if err := h.Look(); err != nil {
			t.Fatal(err)
		}
		if got := h.Status(); got.FreeBytes != step.freeMiB*mib || got.Low != step.low {
			t.Errorf("others %d MiB: %+v", step.othersMiB, got)
		}
		if _, err := os.Stat(path); (err == nil) != step.held {
			t.Errorf("others %d MiB: reserve %v", step.othersMiB, err)
		}
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
