package numbers

import (
	"slices"
	"time"
)

const (
	// SlowestMax is how many of the slowest keys are kept.
	SlowestMax = 5
	// slowestLife is how long a slow pass is remembered.
	slowestLife = 10 * time.Minute
)

// SlowKey is one pass over a key that took long.
type SlowKey struct {
	Key  string        `json:"key"`
	Took time.Duration `json:"tookNanoseconds"`
	At   time.Time     `json:"at"`
}

// slowest are the slowest passes of the last minutes, the slowest first, one of each key.
type slowest struct{ keys []SlowKey }

func (s *slowest) add(now time.Time, took time.Duration, name func() string) {
	s.keys = slices.DeleteFunc(s.keys, func(k SlowKey) bool { return now.Sub(k.At) > slowestLife })
	if len(s.keys) == SlowestMax && took <= s.keys[SlowestMax-1].Took {
		return
	}
	key := name()
	if at := slices.IndexFunc(s.keys, func(k SlowKey) bool { return k.Key == key }); at >= 0 {
		if s.keys[at].Took >= took {
			return
		}
		s.keys = slices.Delete(s.keys, at, at+1)
	}
	at := slices.IndexFunc(s.keys, func(k SlowKey) bool { return k.Took < took })
	if at < 0 {
		at = len(s.keys)
	}
	s.keys = slices.Insert(s.keys, at, SlowKey{Key: key, Took: took, At: now})
	s.keys = s.keys[:min(len(s.keys), SlowestMax)]
}
