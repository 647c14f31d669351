package numbers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
)

var start = time.Unix(1_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func named(name string) func() string { return func() string { return name } }

// write says something of an object at each second until it is a circle.
func write(l *Loop, from, times int, said func(n int) uint64) (circle *Circle, second int) {
	for n := range times {
		if circle = l.Wrote(at(float64(from+n)), "n/key", "pods n/p", said(n)); circle != nil {
			return circle, n
		}
	}
	return nil, times
}

func TestCircles(t *testing.T) {
	for name, c := range map[string]struct {
		said   func(n int) uint64
		second int // of the write that is one too many; 60: none is
	}{
		"the same again and again":   {func(int) uint64 { return 7 }, CircleRepeats},
		"there and back":             {func(n int) uint64 { return uint64(1 + n%2) }, CircleRepeats + 1},
		"a circle of four":           {func(n int) uint64 { return uint64(1 + n%4) }, CircleRepeats + 3},
		"something new each time":    {func(n int) uint64 { return uint64(1 + n) }, 60},
		"the same every fifth write": {func(n int) uint64 { return uint64(1 + n%5) }, 60},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(Ledger).Begin("c", "q")
			circle, second := write(l, 0, 60, c.said)
			if second != c.second {
				t.Errorf("a circle %+v at write %d, want %d", circle, second, c.second)
			}
		})
	}
}

func TestWhatIsRepeatedSlowlyIsNoCircle(t *testing.T) {
	l := new(Ledger).Begin("c", "q")
	for n := range 1000 { // every four seconds: 15 in a minute
		if circle := l.Wrote(at(float64(4*n)), "k", "pods p", 7); circle != nil {
			t.Fatalf("write %d: %+v", n, circle)
		}
	}
}

func TestCirclesRestLongerEachTime(t *testing.T) {
	l := new(Ledger).Begin("c", "q")
	same := func(int) uint64 { return 7 }
	_, second := write(l, 0, 60, same)
	now := at(float64(second))
	var rests []time.Duration
	for range 5 {
		rest := l.PutOff(now, named("n/key"))
		rests = append(rests, rest)
		if other := l.PutOff(now, named("n/other")); other != 0 {
			t.Fatalf("another key rests %v", other)
		}
		now = now.Add(rest)
		if left := l.PutOff(now, named("n/key")); left != 0 {
			t.Fatalf("after its rest it rests %v", left)
		}
		circle := l.Wrote(now, "n/key", "pods n/p", 7)
		if circle == nil {
			t.Fatal("a repetition on probation is no circle")
		}
	}
	if got, want := fmt.Sprint(rests), "[1s 2s 4s 8s 8s]"; got != want {
		t.Errorf("it rests %s, want %s", got, want)
	}
	l.Lift(named("n/key"))
	if rest := l.PutOff(now, named("n/key")); rest != 0 {
		t.Errorf("its object has changed, and it rests %v", rest)
	}
	now = now.Add(circleProbation + time.Second)
	if circle := l.Wrote(now, "n/key", "pods n/p", 7); circle != nil {
		t.Errorf("after the probation: %+v", circle)
	}
	if counts := l.Counts(now); counts.Circles != 6 {
		t.Errorf("%d circles are counted, want 6", counts.Circles)
	}
}

func TestFailingKeysAreToldOnceAnHour(t *testing.T) {
	l, told := new(Ledger).Begin("c", "q"), []int{}
	for tries := 1; tries <= 100; tries++ { // one a minute
		if l.Failed(at(float64(60*tries)), "n/key", tries, at(float64(60*tries+60)), errors.New("no")) {
			told = append(told, tries)
		}
	}
	if got := fmt.Sprint(told); got != "[10 70]" {
		t.Errorf("told at tries %s", got)
	}
	report, _ := l.Report(at(6000))
	if len(report.Failing) != 1 || report.Failing[0].Tries != 100 || report.Failing[0].Error != "no" {
		t.Errorf("failing: %+v", report.Failing)
	}
	l.Succeeded(named("n/key"))
	report, _ = l.Report(at(6001))
	if len(report.Failing) != 0 || report.LastError == nil || report.LastError.Key != "n/key" {
		t.Errorf("after success: failing %+v, last %+v", report.Failing, report.LastError)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	l := new(Ledger).Begin("c", "q")
	for n := range 3 * ObjectsMax {
		name := fmt.Sprint("k", n)
		l.Failed(at(float64(n)), name, 1+n%50, time.Time{}, errors.New(strings.Repeat("long ", 1000)))
		l.Wrote(at(float64(n)), name, "pods "+name, 1)
		l.Working(at(float64(n)), named(name))(at(float64(n) + 1 + float64(n)/1000))
	}
	report, _ := l.Report(at(3*ObjectsMax - 1)) // the time of the last write
	if len(report.Failing) != FailingMax || len(report.Failing[0].Error) > errorBytesMax+len("…(5,000 bytes)") || report.Failing[FailingMax-1].Tries < 40 {
		t.Errorf("%d failing keys, the last %+v", len(report.Failing), report.Failing[len(report.Failing)-1])
	}
	if len(l.circles.objects) != ObjectsMax || len(report.Slowest) != SlowestMax {
		t.Errorf("%d objects, %d slow keys", len(l.circles.objects), len(report.Slowest))
	}
	if report.WritesPerMinute != rateSeconds {
		t.Errorf("%d writes a minute, want %d", report.WritesPerMinute, rateSeconds)
	}
}

func TestANewTermGoesOnCounting(t *testing.T) {
	ledger := &Ledger{}
	first := ledger.Begin("c", "q")
	first.Queued(start)
	first.Failed(start, "k", 1, start, errors.New("no"))
	first.Retried()
	first.End()
	if reports := ledger.Reports(start); len(reports) != 0 {
		t.Errorf("nothing acts, and %+v is told", reports)
	}
	second := ledger.Begin("c", "q")
	second.Queued(start)
	counts := ledger.Counts(start)
	if len(counts) != 1 || counts[0].Adds != 2 || counts[0].Retries != 1 || counts[0].Depth != 1 || counts[0].Failing != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestTheLastPassesAreKept(t *testing.T) {
	l := &Ledger{}
	loop := l.Begin("deployment-controller", "deployment")
	const more = 5
	for n := range PassesMax + more {
		pass := Pass{Key: func() string { return fmt.Sprint(n) }, At: at(float64(n))}
		if n%2 == 0 {
			pass.Writes, pass.Acts = 1, []actions.Line{{Verb: "create", Object: "pods n/p", Wanted: actions.Number(1), Observed: actions.Number(0)}}
		}
		loop.Passed(pass)
	}
	all, next, missed := l.PassesSince(0)
	if len(all) != PassesMax || all[0].Key != fmt.Sprint(more) || next != PassesMax+more || missed != more {
		t.Errorf("%d passes from %s, next %d, %d missed", len(all), all[0].Key, next, missed)
	}
	last, _, missed := l.PassesSince(next - 2)
	want := []PassReport{
		{Loop: "deployment-controller", Queue: "deployment", Key: fmt.Sprint(next - 2), At: at(float64(next - 2))},
		{
			Loop: "deployment-controller", Queue: "deployment", Key: fmt.Sprint(next - 1), At: at(float64(next - 1)), Writes: 1,
			Acts: []Act{{Wanted: "1", Observed: "0", Did: "create pods n/p", Object: "pods n/p"}},
		},
	}
	if diff := cmp.Diff(want, last); diff != "" || missed != 0 || !last[0].Idle() || last[1].Idle() {
		t.Errorf("%d missed: %s", missed, diff)
	}
	if none, again, _ := l.PassesSince(next + 100); len(none) != 0 || again != next {
		t.Errorf("%d passes of the future, next %d", len(none), again)
	}
	if counts := l.Counts(at(0))[0]; counts.Passes != next || counts.Idle != PassesMax/2+more/2 {
		t.Errorf("%d passes, %d of them idle", counts.Passes, counts.Idle)
	}
}

// TestALedgerKnowsItsTerm, and one that counts nothing knows none.
func TestALedgerKnowsItsTerm(t *testing.T) {
	for _, c := range []struct {
		ledger *Ledger
		want   uint64
	}{{&Ledger{}, 7}, {nil, 0}} {
		c.ledger.BeginTerm(7)
		if got := c.ledger.Term(); got != c.want {
			t.Errorf("term %d, want %d", got, c.want)
		}
	}
}
