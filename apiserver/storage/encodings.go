package storage

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
)

// encodingsBytesMax is what all kept encodings of a process may take together. In JSON, 40,000 pods of 1.9 KB take 83 MiB. Without a bound,
// one list of everything in each form would keep as much again as the store holds, for each of them.
const encodingsBytesMax = 128 << 20

// encodingOverheadBytes is charged for an encoding beside its bytes.
const encodingOverheadBytes = 128

// keptEncodings are the encodings that all Cached of this process keep.
var keptEncodings = &encodingsKept{limitBytes: encodingsBytesMax}

// encodingsKept remembers in which order encodings were made. Once all are too large, the oldest are forgotten, and who asks for them next
// makes them anew. It holds no object: the encodings of an object that nobody has any more count until a garbage collection has found that
// out and the next sweep comes. So those that change do not push out the encodings of the others, if what is alive takes no more than half
// of the limit, and if a collection runs for each quarter of it that is added.
type encodingsKept struct {
	limitBytes int

	mu    sync.Mutex
	bytes int
	// unsweptBytes were added since the last sweep.
	unsweptBytes int
	// order is a queue: first is where it begins.
	order []keptEncoding
	first int
}

type keptEncoding struct {
	of    weak.Pointer[Cached]
	id    runtime.Identifier
	bytes int
}

// sweepPart of the limit has to be added before a sweep: each looks at everything that is kept.
const sweepPart = 4

// add notes an encoding that was just made, and forgets the oldest as long as all are too large.
func (k *encodingsKept) add(c *Cached, id runtime.Identifier, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size += encodingOverheadBytes
	k.order = append(k.order, keptEncoding{weak.Make(c), id, size})
	k.bytes += size
	k.unsweptBytes += size
	if k.bytes > k.limitBytes && k.unsweptBytes >= k.limitBytes/sweepPart {
		k.sweep()
	}
	for k.bytes > k.limitBytes {
		k.forgetOldest()
	}
}

// sweep takes the encodings of objects that are gone, and those that were forgotten, out of the queue.
func (k *encodingsKept) sweep() {
	k.first, k.bytes, k.unsweptBytes = 0, 0, 0
	k.order = slices.DeleteFunc(k.order, func(e keptEncoding) bool { return e.of.Value() == nil })
	for _, e := range k.order {
		k.bytes += e.bytes
	}
}

func (k *encodingsKept) forgetOldest() {
	oldest := &k.order[k.first]
	if c := oldest.of.Value(); c != nil {
		c.forget(oldest.id)
	}
	k.bytes -= oldest.bytes
	*oldest = keptEncoding{}
	k.first++
}

type encoding struct {
	id   runtime.Identifier
	next atomic.Pointer[encoding]
	once sync.Once
	// made is true once bytes and err can be read.
	made  atomic.Bool
	bytes []byte
	err   error
}

// encoded returns one encoding of the object, made by whoever asks first.
func (c *Cached) encoded(id runtime.Identifier, encode func() ([]byte, error)) ([]byte, error) {
	e := c.encodingFor(id)
	e.once.Do(func() {
		e.bytes, e.err = encode()
		e.made.Store(true)
		keptEncodings.add(c, id, cap(e.bytes))
	})
	return e.bytes, e.err
}

// encodingFor returns the encoding of that name, perhaps one that nobody has made yet.
func (c *Cached) encodingFor(id runtime.Identifier) *encoding {
	for {
		first := c.encodings.Load()
		if e := first.find(id); e != nil {
			return e
		}
		fresh := &encoding{id: id}
		fresh.next.Store(first)
		if c.encodings.CompareAndSwap(first, fresh) {
			return fresh
		}
	}
}

// find returns the encoding of that name in the list that begins with e, or nil.
func (e *encoding) find(id runtime.Identifier) *encoding {
	for e != nil && e.id != id {
		e = e.next.Load()
	}
	return e
}

// forget takes the encoding of that name out of the list. Others may add to its front meanwhile; there is one call at a time.
func (c *Cached) forget(id runtime.Identifier) {
	link := &c.encodings
	for e := link.Load(); e != nil; e = link.Load() {
		if e.id != id {
			link = &e.next
		} else if link.CompareAndSwap(e, e.next.Load()) {
			return
		} // else one was added to the front, which is looked at next
	}
}
