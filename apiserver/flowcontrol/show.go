package flowcontrol

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// debugPath is where upstream shows what waits and why.
const debugPath = "/debug/api_priority_and_fairness/"

// Documents show the levels, the flows and the requests that wait, by path.
func (f *Fairness) Documents() map[string]http.Handler {
	return map[string]http.Handler{
		debugPath + "dump_priority_levels": f.document(levelColumns, (*level).rows),
		debugPath + "dump_queues":          f.document(flowColumns, (*level).flowRows),
		debugPath + "dump_requests":        f.document(requestColumns, (*level).requestRows),
	}
}

var (
	levelColumns = []string{
		"PriorityLevelName",
		"ActiveQueues",
		"WaitingRequests",
		"ExecutingRequests",
		"DispatchedRequests",
		"RejectedRequests",
		"TimedoutRequests",
		"Seats",
	}
	flowColumns    = []string{"PriorityLevelName", "FlowSchemaName", "FlowDistinguisher", "PendingRequests", "SeatsInUse"}
	requestColumns = []string{"PriorityLevelName", "FlowSchemaName", "FlowDistinguisher", "RequestIndexInQueue", "ArrivalOrder"}
)

func (f *Fairness) document(columns []string, rows func(*level) [][]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, strings.Join(columns, ", ")+"\n")
		for _, l := range f.sorted() {
			for _, row := range rows(l) {
				_, _ = fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v, ", len(row)), row...), ", "))
			}
		}
	})
}

func (f *Fairness) sorted() []*level {
	levels := f.plan.Load().levels
	sorted := make([]*level, 0, len(levels))
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		sorted = append(sorted, levels[name])
	}
	return sorted
}

func (l *level) rows() [][]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	return [][]any{{l.name, len(l.flows), l.waiting, l.executing, c.dispatched, c.rejected, c.timedOut, l.seats}}
}

func (l *level) flowRows() (rows [][]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.flows {
		rows = append(rows, []any{l.name, f.key.schema, f.key.distinguisher, len(f.waiting), f.taken})
	}
	return rows
}

func (l *level) requestRows() (rows [][]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.flows {
		for i, t := range f.waiting {
			rows = append(rows, []any{l.name, f.key.schema, f.key.distinguisher, i, t.order})
		}
	}
	return rows
}

// Upstream's names of what a level does.
var (
	executingMetric  = newMetric("apiserver_flowcontrol_current_executing_requests", "Requests that execute now.")
	waitingMetric    = newMetric("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait now.")
	seatsMetric      = newMetric("apiserver_flowcontrol_nominal_limit_seats", "Requests that may execute at once; 0 for an exempt level.")
	dispatchedMetric = newMetric("apiserver_flowcontrol_dispatched_requests_total", "Requests that have executed, or do.")
	rejectedMetric   = newMetric("apiserver_flowcontrol_rejected_requests_total", "Requests that were refused, or whose patience ended.")
)

func newMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"priority_level"}, nil)
}

// Describe implements prometheus.Collector.
func (f *Fairness) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{executingMetric, waitingMetric, seatsMetric, dispatchedMetric, rejectedMetric} {
		out <- d
	}
}

// Collect implements prometheus.Collector: it costs when somebody looks, not with each request.
func (f *Fairness) Collect(out chan<- prometheus.Metric) {
	for _, l := range f.sorted() {
		l.mu.Lock()
		executing, waiting, seats, c := l.executing, l.waiting, l.seats, l.counts
		l.mu.Unlock()
		for _, m := range []struct {
			desc  *prometheus.Desc
			kind  prometheus.ValueType
			value float64
		}{
			{executingMetric, prometheus.GaugeValue, float64(executing)},
			{waitingMetric, prometheus.GaugeValue, float64(waiting)},
			{seatsMetric, prometheus.GaugeValue, float64(seats)},
			{dispatchedMetric, prometheus.CounterValue, float64(c.dispatched)},
			{rejectedMetric, prometheus.CounterValue, float64(c.rejected + c.timedOut)},
		} {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value, l.name)
		}
	}
}
