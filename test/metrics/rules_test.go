package metrics

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

// sample is a float at a time in milliseconds.
type sample struct {
	chunks.Sample
	at    int64
	value float64
}

func (s sample) T() int64                 { return s.at }
func (s sample) F() float64               { return s.value }
func (s sample) ST() int64                { return 0 }
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample      { return s }

// scrapes are series by their labels. It is a storage.Queryable.
type scrapes struct {
	storage.LabelQuerier
	series map[string]labels.Labels
	points map[string][]chunks.Sample
}

func (s *scrapes) Querier(_, _ int64) (storage.Querier, error) { return s, nil }
func (s *scrapes) Close() error                                { return nil }

func (s *scrapes) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &found{}
next:
	for id, l := range s.series {
		for _, m := range matchers {
			if !m.Matches(l.Get(m.Name)) {
				continue next
			}
		}
		set.all = append(set.all, storage.NewListSeries(l, s.points[id]))
	}
	return set
}

type found struct {
	all []storage.Series
	at  int
}

func (f *found) Next() bool                        { f.at++; return f.at <= len(f.all) }
func (f *found) At() storage.Series                { return f.all[f.at-1] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// add reads a scrape as Prometheus does, with the labels of a job.
func (s *scrapes) add(t *testing.T, text []byte, at time.Time) {
	t.Helper()
	p, err := textparse.New(text, "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := p.Series()
		var l labels.Labels
		p.Labels(&l)
		l = labels.NewBuilder(l).Set("job", "apiserver").Set("instance", "a:6443").Labels()
		s.series[l.String()] = l
		s.points[l.String()] = append(s.points[l.String()], sample{at: at.UnixMilli(), value: value})
	}
}

// asked must find something on a server that was asked for a few things.
var asked = []string{
	`sum by (code, resource) (rate(apiserver_request_total{job="apiserver"}[5m]))`,
	`sum by (resource, verb) (increase(apiserver_request_total{job="apiserver",verb=~"LIST|GET",code=~"2.."}[1h]))`,
	`sum by (scope, le) (rate(apiserver_request_sli_duration_seconds_bucket{job="apiserver",verb=~"LIST|GET",scope=~"resource|",le=~"1(\\.0)?"}[5m]))`,
	`sum by (le) (increase(apiserver_request_sli_duration_seconds_bucket{verb=~"POST|PUT|PATCH|DELETE",le=~"1(\\.0)?",subresource!~"proxy|attach|log|exec|portforward"}[1h]))`,
	`histogram_quantile(0.99, sum by (le, resource) (rate(apiserver_request_duration_seconds_bucket{job="apiserver",verb!="WATCH"}[5m]))) > 0`,
	`sum by (request_kind) (apiserver_current_inflight_requests{job="apiserver"})`,
	`apiserver_client_certificate_expiration_seconds_count{job="apiserver"} > 0`,
	`histogram_quantile(0.01, sum by (job, le) (rate(apiserver_client_certificate_expiration_seconds_bucket{job="apiserver"}[5m]))) > 86400`,
	`apiserver_storage_objects{resource="configmaps"} > 0`,
	`sum by (instance, job) (rate(rest_client_requests_total{code=~"2.."}[5m])) > 0`,
	`histogram_quantile(0.99, sum by (verb, le) (rate(rest_client_request_duration_seconds_bucket[5m]))) > 0`,
	`sum by (instance, name) (rate(workqueue_adds_total{job="apiserver"}[5m]))`,
	`workqueue_depth{job="apiserver",name="deployment"}`,
	`histogram_quantile(0.99, sum by (instance, name, le) (rate(workqueue_queue_duration_seconds_bucket[5m]))) > 0`,
	`scheduler_pending_pods{queue="unschedulable"}`,
	`max(leader_election_master_status{name="kube-scheduler"}) == 1`,
	`count by (git_version) (kubernetes_build_info{job!~"kube-dns|coredns"})`,
	`time() - process_start_time_seconds > 0`,
	`process_resident_memory_bytes > 0`,
	`go_goroutines > 0`,
	`sum(setpoint_store_leader) == 1`,
}

func TestRules(t *testing.T) {
	s, now := scraped(t)
	for _, rule := range asked {
		find(t, s, now, rule)
	}
}

// scraped are three scrapes, 30 seconds apart by their times, of a server that is asked for a few things, the last one now.
func scraped(t *testing.T) (*scrapes, time.Time) {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{SimulatedNodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	access, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(access)
	s, now := &scrapes{series: map[string]labels.Labels{}, points: map[string][]chunks.Sample{}}, time.Now()
	for i := range 3 {
		work(t, client)
		text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.add(t, text, now.Add(time.Duration(i-2)*30*time.Second))
	}
	return s, now
}

// work is a read, a list, a write and a deletion.
func work(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := namespaces.Patch(t.Context(), "default", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
