package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	at := func(instance string, counter uint64, p phase, opened, changed time.Duration) record {
		return record{instance: instance, counter: counter, phase: p, opened: ago(opened), changed: ago(changed)}
	}
	minute := time.Minute
	for _, c := range []struct {
		name    string
		records []record
		want    Entry
	}{
		{"never seen", nil, Entry{}},
		{"open", []record{at("a", 1, open, minute, minute)}, Entry{Alive, ago(minute)}},
		{"just broken", []record{at("a", 1, broken, minute, 2*time.Second)}, Entry{Alive, ago(minute)}},
		{"broken for 3 s", []record{at("a", 1, broken, minute, 3*time.Second)}, Entry{Lost, now}},
		{"no ping", []record{at("a", 1, expired, minute, 0)}, Entry{Lost, now}},
		{"goodbye", []record{at("a", 1, closed, minute, time.Second)}, Entry{ClosedCleanly, ago(time.Second)}},
		{"came back elsewhere", []record{at("a", 1, broken, minute, 9*time.Second), at("a", 2, open, 8*time.Second, 8*time.Second)}, Entry{Alive, ago(8 * time.Second)}},
		{"the old server noticed late", []record{at("a", 1, expired, minute, 0), at("a", 2, open, 14*time.Second, 14*time.Second)}, Entry{Alive, ago(14 * time.Second)}},
		{"the counter decides, not the clock", []record{at("a", 2, open, 5*time.Second, 5*time.Second), at("a", 1, expired, time.Second, time.Second)}, Entry{Alive, ago(5 * time.Second)}},
		{"goodbye elsewhere while the old server waits", []record{at("a", 1, open, minute, minute), at("a", 2, closed, 10*time.Second, time.Second)}, Entry{ClosedCleanly, ago(time.Second)}},
		{"a new process of the agent", []record{at("a", 7, closed, minute, 30*time.Second), at("b", 1, open, 20*time.Second, 20*time.Second)}, Entry{Alive, ago(20 * time.Second)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, judge(c.records, now)); diff != "" {
				t.Error(diff)
			}
			for i, j := 0, len(c.records)-1; i < j; i, j = i+1, j-1 {
				c.records[i], c.records[j] = c.records[j], c.records[i]
			}
			if diff := cmp.Diff(c.want, judge(c.records, now)); diff != "" {
				t.Error("in another order:", diff)
			}
		})
	}
}
