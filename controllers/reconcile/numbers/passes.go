package numbers

import (
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
)

const (
	// PassesMax is how many passes a Ledger keeps, of all loops together; of more, the oldest go.
	PassesMax = 1000
	// ActsMax is how many writes of one pass are kept; all are counted.
	ActsMax = 4
)

// Pass is one call of a loop about one key, which has ended.
type Pass struct {
	// Key is formatted only when somebody reads.
	Key  func() string
	At   time.Time
	Took time.Duration
	// Writes is how many were accepted, Acts the first of all that were tried.
	Writes int
	Acts   []actions.Line
	// Err is why the pass failed. Its text is kept.
	Err error

	loop, queue, failure string
}

// idle says that the pass found nothing to do.
func (p *Pass) idle() bool { return p.Writes == 0 && len(p.Acts) == 0 && p.failure == "" }

// PassReport is a Pass for `setpoint loops -w`.
type PassReport struct {
	Loop  string    `json:"loop"`
	Queue string    `json:"queue"`
	Key   string    `json:"key"`
	At    time.Time `json:"at"`
	// Took is in nanoseconds.
	Took   time.Duration `json:"took"`
	Writes int           `json:"writes"`
	Acts   []Act         `json:"acts,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// Act is one write of a pass: what was wanted and seen, what was done about it, and because of which object.
type Act struct {
	Wanted   string `json:"wanted,omitempty"`
	Observed string `json:"observed,omitempty"`
	Did      string `json:"did"`
	Object   string `json:"object,omitempty"`
	Because  string `json:"because,omitempty"`
}

// Idle says that the pass found nothing to do.
func (p *PassReport) Idle() bool { return p.Writes == 0 && len(p.Acts) == 0 && p.Error == "" }

// passes are the last PassesMax of all loops.
type passes struct {
	mu   sync.Mutex
	kept []Pass // pass n, counted from 0, is at n modulo PassesMax
	next uint64 // how many there ever were
}

func (p *passes) add(pass Pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) < PassesMax {
		p.kept = append(p.kept, pass)
	} else {
		p.kept[p.next%PassesMax] = pass
	}
	p.next++
}

// since copies those from a number on; from is the number of the first of them.
func (p *passes) since(number uint64) (found []Pass, from, next uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = min(max(number, p.next-uint64(len(p.kept))), p.next)
	for n := from; n < p.next; n++ {
		found = append(found, p.kept[n%PassesMax])
	}
	return found, from, p.next
}

// PassesSince are the passes of all loops from a number on, the number of the next one, and how many of those before are forgotten.
func (l *Ledger) PassesSince(number uint64) (reports []PassReport, next, missed uint64) {
	if l == nil {
		return nil, 0, 0
	}
	found, from, next := l.passes.since(number)
	for i := range found {
		reports = append(reports, found[i].report())
	}
	if from > number {
		missed = from - number
	}
	return reports, next, missed
}

func (p *Pass) report() PassReport {
	r := PassReport{Loop: p.loop, Queue: p.queue, Key: p.Key(), At: p.At, Took: p.Took, Writes: p.Writes, Error: p.failure}
	for i := range p.Acts {
		r.Acts = append(r.Acts, actOf(&p.Acts[i]))
	}
	return r
}

func actOf(line *actions.Line) Act {
	act := Act{Did: line.Did(), Object: line.Object, Because: line.Because()}
	if line.Wanted.Known {
		act.Wanted = line.Wanted.String()
	}
	if line.Observed.Known {
		act.Observed = line.Observed.String()
	}
	return act
}

// Passed notes a pass that has ended.
func (l *Loop) Passed(p Pass) {
	if l == nil {
		return
	}
	p.loop, p.queue = l.controller, l.queue
	if p.Err != nil {
		p.failure, p.Err = inOneLine(p.Err.Error()), nil
	}
	l.mu.Lock()
	l.counts.Passes++
	if p.idle() {
		l.counts.Idle++
	}
	l.mu.Unlock()
	l.passes.add(p)
}
