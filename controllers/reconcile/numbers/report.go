package numbers

import (
	"slices"
	"strings"
	"time"
)

// Report is what one loop does, for `setpoint loops`.
type Report struct {
	// Loop is the controller's name, Queue that of the queue in /metrics: a controller may have several.
	Loop  string `json:"loop"`
	Queue string `json:"queue"`
	// Depth is how many keys wait, Oldest since when the first of them does, Working how many are worked on.
	Depth   int        `json:"depth"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	Working int        `json:"working"`
	// Paused: it begins no pass, but for Steps.
	Paused bool `json:"paused,omitempty"`
	Steps  int  `json:"steps,omitempty"`
	// Passes have ended, Idle of them found nothing to do. These, Adds and Retries are since the server's start, WritesPerMinute of the
	// last minute.
	Passes          uint64 `json:"passes"`
	Idle            uint64 `json:"idle"`
	Adds            uint64 `json:"adds"`
	Retries         uint64 `json:"retries"`
	WritesPerMinute int    `json:"writesPerMinute"`
	// LastError is the last of the term.
	LastError *LastError `json:"lastError,omitempty"`
	// Failing are the keys whose last pass failed, most tries first; Slowest those that took longest in the last minutes.
	Failing []FailingKey `json:"failing,omitempty"`
	Slowest []SlowKey    `json:"slowest,omitempty"`
	// Circles are objects that the loop writes in circles.
	Circles []Circle `json:"circles,omitempty"`
}

// LastError is why a pass failed.
type LastError struct {
	Key   string    `json:"key"`
	Error string    `json:"error"`
	At    time.Time `json:"at"`
}

// Report tells of the loop; acts is false once its turn is over.
func (l *Loop) Report(now time.Time) (report Report, acts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.acts {
		return Report{}, false
	}
	report = Report{
		Loop: l.controller, Queue: l.queue, Depth: l.counts.Depth, Oldest: timeOrNil(l.oldest), Working: len(l.working),
		Adds: l.counts.Adds, Passes: l.counts.Passes, Idle: l.counts.Idle, Retries: l.counts.Retries, WritesPerMinute: l.writes.lastMinute(now),
		Failing: l.failing.sorted(), Slowest: slices.Clone(l.slow.keys), Circles: l.circles.list(now),
	}
	slices.SortFunc(report.Circles, func(a, b Circle) int { return strings.Compare(a.Object, b.Object) })
	if last := l.failing.last; last != nil {
		report.LastError = &LastError{Key: last.Key, Error: last.Error, At: last.At}
	}
	return report, true
}
