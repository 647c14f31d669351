package router

import "sync"

// copyBytes is how much of an answer is passed on at once.
const copyBytes = 32 << 10

// buffers implements httputil.BufferPool: a fresh buffer for each answer is a sixth of what a small one costs.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[copyBytes]byte); ok {
		return kept[:]
	}
	return make([]byte, copyBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(used []byte) { b.pool.Put((*[copyBytes]byte)(used)) }
