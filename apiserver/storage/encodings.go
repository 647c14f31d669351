package storage

import (
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
)

// encodingsBytesMax is what all kept encodings of a process may take together. A list of 40,000 pods in JSON finds room. Without a bound,
// one list of everything in each form would keep as much again as the store holds, for each of them.
const encodingsBytesMax = 128 << 20

// encodingOverheadBytes is charged for an encoding beside its bytes.
const encodingOverheadBytes = 128

// keptEncodings are the encodings that all Cached of this process keep.
var keptEncodings = &encodingsKept{limitBytes: encodingsBytesMax}

// encodingsKept remembers in which order encodings were made. Once they are too many, the objects with the oldest lose theirs, which the
// next reader makes anew. An object that nobody has any more is not held by it.
type encodingsKept struct {
	limitBytes int

	mu    sync.Mutex
	bytes int
	// order is a queue: first is where it begins.
	order []keptEncoding
	first int
}

type keptEncoding struct {
	of    weak.Pointer[Cached]
	bytes int
}

// add notes an encoding that was just made, and forgets the oldest as long as all are too large.
func (k *encodingsKept) add(c *Cached, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.makeRoom()
	size += encodingOverheadBytes
	k.order = append(k.order, keptEncoding{weak.Make(c), size})
	for k.bytes += size; k.bytes > k.limitBytes; {
		k.forgetOldest()
	}
}

// forgetOldest takes all encodings from the object with the oldest one. Those that were made later are counted until their turn comes.
func (k *encodingsKept) forgetOldest() {
	oldest := &k.order[k.first]
	if c := oldest.of.Value(); c != nil {
		c.encodings.Store(nil)
	}
	k.bytes -= oldest.bytes
	*oldest = keptEncoding{}
	k.first++
}

// makeRoom takes what is forgotten, and whose objects are gone, out of a full queue, and makes it larger if it is more than half full then.
func (k *encodingsKept) makeRoom() {
	if len(k.order) < cap(k.order) {
		return
	}
	k.first = 0
	k.order = slices.DeleteFunc(k.order, func(e keptEncoding) bool {
		gone := e.of.Value() == nil
		if gone {
			k.bytes -= e.bytes
		}
		return gone
	})
	if len(k.order) > cap(k.order)/2 {
		k.order = slices.Grow(k.order, cap(k.order))
	}
}

type encoding struct {
	id    runtime.Identifier
	next  *encoding
	once  sync.Once
	bytes []byte
	err   error
}

// encoded returns one encoding of the object, made by whoever asks first.
func (c *Cached) encoded(id runtime.Identifier, encode func() ([]byte, error)) ([]byte, error) {
	e := c.encodingFor(id)
	e.once.Do(func() {
		e.bytes, e.err = encode()
		keptEncodings.add(c, cap(e.bytes))
	})
	return e.bytes, e.err
}

// encodingFor returns the encoding of that name, perhaps one that nobody has made yet.
func (c *Cached) encodingFor(id runtime.Identifier) *encoding {
	for {
		first := c.encodings.Load()
		for e := first; e != nil; e = e.next {
			if e.id == id {
				return e
			}
		}
		fresh := &encoding{id: id, next: first}
		if c.encodings.CompareAndSwap(first, fresh) {
			return fresh
		}
	}
}
