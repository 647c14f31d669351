package timing

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/internal/histograms"
)

// The halves of admission, as upstream names them.
const (
	Admit    = "admit"
	Validate = "validate"
)

// Metrics tell how long admission takes, as upstream's metrics of these names do: each plugin, and all of them. The methods
// may be called from any goroutine, and those of nil do nothing.
type Metrics struct{ step, plugin *prometheus.HistogramVec }

// durationBounds are upstream's, in seconds.
var durationBounds = []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5}

// New counts from 0.
func New() *Metrics {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(histograms.Options("apiserver_admission_"+name, help, durationBounds), labels)
	}
	return &Metrics{
		step: histogram("step_admission_duration_seconds",
			"Time of one half of admission, admit or validate, by all plugins.", "type", "operation", "rejected"),
		plugin: histogram("controller_admission_duration_seconds",
			"Time of one admission plugin.", "name", "type", "operation", "rejected"),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { m.step.Describe(out); m.plugin.Describe(out) }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) { m.step.Collect(out); m.plugin.Collect(out) }

// Timer adds to one series for each outcome.
type Timer struct{ passed, rejected prometheus.Observer }

// Step is for all plugins of one half, Admit or Validate.
func (m *Metrics) Step(half string, operation admission.Operation) *Timer {
	if m == nil {
		return nil
	}
	return timerOf(func(rejected string) prometheus.Observer {
		return m.step.WithLabelValues(half, string(operation), rejected)
	})
}

// Plugin is for one plugin of a half.
func (m *Metrics) Plugin(name, half string, operation admission.Operation) *Timer {
	if m == nil {
		return nil
	}
	return timerOf(func(rejected string) prometheus.Observer {
		return m.plugin.WithLabelValues(name, half, string(operation), rejected)
	})
}

func timerOf(series func(rejected string) prometheus.Observer) *Timer {
	return &Timer{series(strconv.FormatBool(false)), series(strconv.FormatBool(true))}
}

// Time runs what is timed. A nil Timer only runs it.
func (t *Timer) Time(do func() error) error {
	if t == nil {
		return do()
	}
	begun := time.Now()
	err := do()
	if err != nil {
		t.rejected.Observe(time.Since(begun).Seconds())
	} else {
		t.passed.Observe(time.Since(begun).Seconds())
	}
	return err
}
