package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard is what the tests read of one of Grafana's.
type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// variables are what Grafana puts in their place.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")

func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/monitoring/dashboard-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards (%v)", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

// notScraped are metrics that a fresh server does not show, and why.
var notScraped = map[string]string{
	"up":                                    "Prometheus' own",
	"setpoint_backup_due_timestamp_seconds": "of servers with a schedule of backups",
	"setpoint_audit_events_lost_total":      "of servers that write an audit log",
}

// usedOf are the names of metrics that an expression asks of a job.
func usedOf(t *testing.T, text, job string) (names []string) {
	t.Helper()
	expr, err := parser.ParseExpr(variables.Replace(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, is := n.(*parser.VectorSelector); is {
			for _, m := range v.LabelMatchers {
				if m.Name == "job" && m.Value == job {
					names = append(names, v.Name)
				}
			}
		}
		return nil
	})
	return names
}

// TestWhatIsAskedOfServersIsThere: each metric of the alerts and dashboards is one that a running server tells, and each panel
// of the servers that asks for nothing else finds something.
func TestWhatIsAskedOfServersIsThere(t *testing.T) {
	s, now := scraped(t)
	there := map[string]bool{}
	for _, l := range s.series {
		there[l.Get("__name__")] = true
	}
	known := func(where, text string) bool {
		all := true
		for _, name := range usedOf(t, text, "apiserver") {
			if !there[name] && notScraped[name] == "" {
				t.Errorf("%s: no server tells %s", where, name)
			}
			all = all && there[name]
		}
		return all
	}
	eachAlert(t, readAlerts(t), func(r rulefmt.Rule, _ parser.Expr) { known(r.Alert, r.Expr) })
	for _, d := range readDashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if known(p.Title, target.Expr) && len(usedOf(t, target.Expr, "nodes")) == 0 {
					find(t, s, now, variables.Replace(target.Expr))
				}
			}
		}
	}
}

// find asks for an expression, which must find something.
func find(t *testing.T, s *scrapes, now time.Time, expr string) {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	defer engine.Close()
	query, err := engine.NewInstantQuery(t.Context(), s, nil, expr, now)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	if vector, err := query.Exec(t.Context()).Vector(); err != nil || len(vector) == 0 {
		t.Errorf("%s: finds nothing: %v", expr, err)
	}
}
