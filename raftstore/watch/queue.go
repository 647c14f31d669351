package watch

// window and revisionQueue are queues on one slice: pop moves the head, and the
// dead part is cut off once it is as large as the living, which costs each item
// one move at most.
type (
	window        struct{ queue[Event] }
	revisionQueue struct{ queue[uint64] }
)

type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

func (q *queue[T]) from(i int) []T { return q.items[q.head+i:] }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() {
	var zero T
	q.items[q.head] = zero // what it pointed at must not stay reachable
	q.head++
	if q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}
