package watch_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// TestAnEventCountsItsKeyAndBothValues, beside something for itself.
func TestAnEventCountsItsKeyAndBothValues(t *testing.T) {
	value := func(n int) *record.Record { return &record.Record{Key: "key", Value: make([]byte, n)} }
	empty := (&watch.Event{}).Bytes()
	if empty <= 0 {
		t.Errorf("an event counts %d bytes without key and values", empty)
	}
	for _, tc := range []struct {
		name  string
		event watch.Event
		want  int64
	}{
		{"key", watch.Event{Key: "key"}, 3},
		{"put", watch.Event{Key: "key", Record: value(100)}, 103},
		{"changed", watch.Event{Key: "key", Record: value(100), Prev: value(1000)}, 1103},
		{"deleted", watch.Event{Key: "key", Prev: value(1000)}, 1003},
	} {
		if got := tc.event.Bytes() - empty; got != tc.want {
			t.Errorf("%s: %d bytes, want %d", tc.name, got, tc.want)
		}
	}
}

// TestTypesOfEventsAreThoseOfSnapshots: other releases read the numbers. They are never changed.
func TestTypesOfEventsAreThoseOfSnapshots(t *testing.T) {
	if watch.Put != 1 || watch.Delete != 2 {
		t.Errorf("put %d, delete %d", watch.Put, watch.Delete)
	}
}
