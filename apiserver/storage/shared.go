package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
)

// sharedObjects remembers a hash of every object at its decoding, to find who
// changes what he shares with all readers. For tests: it keeps all of them.
type sharedObjects struct {
	seed   maphash.Seed
	mu     sync.Mutex
	hashes map[*Cached]uint64
}

// VerifyShared makes CheckShared work. Call it before the store is used; it costs
// an encoding for each object, and memory without a limit.
func (s *Store) VerifyShared() {
	s.codec.shared = &sharedObjects{seed: maphash.MakeSeed(), hashes: map[*Cached]uint64{}}
}

// CheckShared names the shared objects that somebody has changed, or returns nil.
func (s *Store) CheckShared() error { return s.codec.shared.check() }

func (o *sharedObjects) remember(c *Cached) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.hashes[c]; !known {
		o.hashes[c] = o.hash(c)
	}
}

func (o *sharedObjects) check() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for c, hash := range o.hashes {
		if o.hash(c) != hash {
			errs = append(errs, fmt.Errorf("storage: the shared %T %s/%s@%s was changed",
				c.object, c.object.GetNamespace(), c.object.GetName(), c.object.GetResourceVersion()))
		}
	}
	return errors.Join(errs...)
}

func (o *sharedObjects) hash(c *Cached) uint64 {
	text, err := json.Marshal(c.object)
	if err != nil {
		panic(err) // stored objects are encodable
	}
	return maphash.Bytes(o.seed, text)
}
