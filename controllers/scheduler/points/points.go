package points

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Point is an extension point. Those of upstream that are missing here have nothing to do here: there are no plugins of others.
type Point string

// The extension points, in the order in which a pod comes to them.
const (
	PreFilter  Point = "PreFilter"
	Filter     Point = "Filter"
	PostFilter Point = "PostFilter"
	Score      Point = "Score"
	Reserve    Point = "Reserve"
	PreBind    Point = "PreBind"
	Bind       Point = "Bind"
)

// Status is how an extension point ended.
type Status string

// The statuses.
const (
	Success       Status = "Success"
	Unschedulable Status = "Unschedulable"
	// Unresolvable says that no node can help, nor can the eviction of other pods.
	Unresolvable Status = "UnschedulableAndUnresolvable"
	Failed       Status = "Error"
)

// Durations are those of one profile's extension points. A zero value counts nothing.
type Durations struct {
	// Of is by extension_point, status and profile.
	Of      *prometheus.HistogramVec
	Profile string
}

// Took counts a point that began then, and failed if there is an error.
func (d Durations) Took(point Point, begun time.Time, err error) {
	status := Success
	if err != nil {
		status = Failed
	}
	d.observe(point, status, time.Since(begun))
}

func (d Durations) observe(point Point, status Status, took time.Duration) {
	if d.Of != nil {
		d.Of.WithLabelValues(string(point), string(status), d.Profile).Observe(took.Seconds())
	}
}

// Laps time points that run one after the other. They are not for concurrent use.
type Laps struct {
	Durations
	last time.Time
}

// Begin says that the next point begins now.
func (l *Laps) Begin() {
	if l.Of != nil {
		l.last = time.Now()
	}
}

// Ran says that a point has ended, and that the next one begins.
func (l *Laps) Ran(point Point, status Status) {
	if l.Of != nil {
		now := time.Now()
		l.observe(point, status, now.Sub(l.last))
		l.last = now
	}
}
