package collect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Policy says when images go. The zero Policy removes none.
type Policy struct {
	// HighPercent of the disk in use starts the removal, which ends at LowPercent. Both are 0 to 100; a HighPercent of 100
	// removes no images for space.
	HighPercent, LowPercent int
	// MinAge is how long an image stays after it was seen first.
	MinAge time.Duration
	// MaxAge is how long an image may be unused; 0 means for ever.
	MaxAge time.Duration
}

// DefaultPolicy is upstream's.
var DefaultPolicy = Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute}

var (
	errPercent = errors.New("thresholds of image garbage collection are percentages, 0 to 100")
	errOrder   = errors.New("the low threshold of image garbage collection must be below the high one")
	errAge     = errors.New("ages of images must not be negative")
	errAges    = errors.New("the maximum age of images must be greater than the minimum age")
)

// Validate judges as upstream judges a KubeletConfiguration.
func (p Policy) Validate() error {
	switch {
	case p.HighPercent < 0 || p.HighPercent > 100 || p.LowPercent < 0 || p.LowPercent > 100:
		return fmt.Errorf("%w: %d and %d", errPercent, p.HighPercent, p.LowPercent)
	case p.LowPercent >= p.HighPercent:
		return fmt.Errorf("%w: %d and %d", errOrder, p.LowPercent, p.HighPercent)
	case p.MinAge < 0 || p.MaxAge < 0:
		return errAge
	case p.MaxAge != 0 && p.MaxAge <= p.MinAge:
		return fmt.Errorf("%w: %v and %v", errAges, p.MaxAge, p.MinAge)
	}
	return nil
}

func (p Policy) never() bool { return p == Policy{} || p.HighPercent == 100 && p.MaxAge == 0 }

// disk is the file system of the images, in bytes.
type disk struct{ capacity, available int64 }

func (d disk) usedPercent() int { return 100 - int(d.available*100/d.capacity) }

// excess is how many bytes have to go, 0 below the high threshold.
func (p Policy) excess(d disk) int64 {
	if d.usedPercent() < p.HighPercent {
		return 0
	}
	return max(0, d.capacity*int64(100-p.LowPercent)/100-d.available)
}

// image is what is known of one.
type image struct {
	id string
	// first is when it was seen first, used when a container had it last; the zero time: never.
	first, used time.Time
	bytes       int64
	pinned      bool
	inUse       bool
}

// candidates are the images that may go, those used longest ago first.
func candidates(list []image) []image {
	out := slices.DeleteFunc(slices.Clone(list), func(i image) bool { return i.pinned || i.inUse })
	slices.SortFunc(out, func(a, b image) int {
		return cmp.Or(a.used.Compare(b.used), a.first.Compare(b.first), cmp.Compare(a.id, b.id))
	})
	return out
}

// tooOld are the candidates that go for their age. An agent that has not run for as long as MaxAge cannot know.
func (p Policy) tooOld(list []image, began, now time.Time) []image {
	if p.MaxAge == 0 || now.Sub(began) <= p.MaxAge {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(i image) bool { return now.Sub(i.used) <= p.MaxAge })
}

// forSpace are the candidates that go for room, in their order. What one frees is known when it is gone, so the caller
// takes them one by one until it has enough.
func (p Policy) forSpace(list []image, now time.Time) []image {
	return slices.DeleteFunc(slices.Clone(list), func(i image) bool { return now.Sub(i.first) < p.MinAge })
}
