package watch

import (
	"slices"
	"testing"
)

// TestAQueueCutsOffWhatIsDead once it is as much as what lives: no sooner, since that moves the rest, and no later, since it takes memory.
func TestAQueueCutsOffWhatIsDead(t *testing.T) {
	for _, tc := range []struct{ pushed, popped, dead int }{
		{3, 1, 1}, {3, 2, 0}, {4, 1, 1}, {4, 2, 0}, {5, 2, 2}, {5, 3, 0}, {1, 1, 0},
	} {
		var q queue[*int]
		for i := range tc.pushed {
			q.push(&i)
		}
		for range tc.popped {
			q.pop()
		}
		if q.head != tc.dead || q.len() != tc.pushed-tc.popped || len(q.items) != q.len()+q.head {
			t.Errorf("%d of %d popped: %d dead and %d live of %d, want %d dead", tc.popped, tc.pushed, q.head, q.len(), len(q.items), tc.dead)
		}
		for i, item := range q.from(0) {
			if *item != tc.popped+i || q.at(i) != &q.items[q.head+i] {
				t.Errorf("%d of %d popped: item %d is %d", tc.popped, tc.pushed, i, *item)
			}
		}
		unreachable := slices.Concat(q.items[:q.head], q.items[len(q.items):cap(q.items)])
		if slices.ContainsFunc(unreachable, func(item *int) bool { return item != nil }) {
			t.Errorf("%d of %d popped: an item that was popped is still reachable", tc.popped, tc.pushed)
		}
	}
}
