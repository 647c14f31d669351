package metrics

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const alertsFile = "../../deploy/monitoring/alerts.yaml"

// world maps series to their values, one every 30 seconds, in the notation of promtool's tests.
type world map[string]string

// healthy is what Prometheus sees of three servers and two nodes at which nothing is to be told.
func healthy() world {
	w := world{}
	for i, instance := range []string{"a", "b", "c"} {
		own := func(name, values string, more ...string) {
			w[fmt.Sprintf(`%s{%s}`, name, strings.Join(append([]string{`job="apiserver"`, `instance="` + instance + `"`}, more...), ","))] = values
		}
		leads := "0x90"
		if i == 0 {
			leads = "1x90"
		}
		own("up", "1x90")
		own("setpoint_store_leader", leads)
		own("setpoint_store_has_leader", "1x90")
		own("setpoint_store_commit_index", "1000+500x90")
		own("setpoint_store_applied_index", "990+500x90")
		own("setpoint_store_elections_total", "3x90")
		own("process_start_time_seconds", "100x90")
		own("setpoint_disk_low", "0x90")
		own("setpoint_disk_full", "0x90")
		own("setpoint_store_sync_p99_seconds", "0.002x90")
		own("setpoint_objects_bytes", "5000x90")
		own("setpoint_objects_limit_bytes", "10000x90")
		own("setpoint_backup_due_timestamp_seconds", "86400x90")
		own("leader_election_master_status", leads, `name="kube-scheduler"`)
		own("setpoint_loop_failing_keys", "0x90", `name="deployment"`)
		own("setpoint_loop_circles_total", "0x90", `name="deployment"`)
		own("scheduler_pending_pods", "0x90", `queue="unschedulable"`)
		own("apiserver_request_total", "0+1000x90", `code="200"`)
		own("apiserver_request_total", "0+1x90", `code="500"`)
		own("apiserver_request_sli_duration_seconds_bucket", "0+1000x90", `verb="GET"`, `le="0.1"`)
		own("apiserver_request_sli_duration_seconds_bucket", "0+1000x90", `verb="GET"`, `le="2"`)
		own("apiserver_request_sli_duration_seconds_bucket", "0+1000x90", `verb="GET"`, `le="+Inf"`)
		own("apiserver_flowcontrol_rejected_requests_total", "0x90", `priority_level="workload-low"`)
		own("setpoint_shares_refused_total", "0x90", `of="watches"`)
		own("setpoint_audit_events_lost_total", "0x90")
		own("apiserver_client_certificate_expiration_seconds_count", "0+10x90")
		own("apiserver_client_certificate_expiration_seconds_bucket", "0x90", `le="604800"`)
		own("apiserver_client_certificate_expiration_seconds_bucket", "0+10x90", `le="31104000"`)
		own("apiserver_client_certificate_expiration_seconds_bucket", "0+10x90", `le="+Inf"`)
		own("setpoint_certificate_expiry_timestamp_seconds", "8640000x90", `kind="server"`, `name="`+instance+`"`)
		own("setpoint_certificate_expiry_timestamp_seconds", "8640000x90", `kind="node"`, `name="n1"`)
		own("node_collector_evictions_total", "0x90", `zone=""`)
	}
	w[`up{job="nodes",instance="n1"}`] = "1x90"
	w[`up{job="nodes",instance="n2"}`] = "1x90"
	return w
}

// faults are, for each alert, what differs from the healthy world when its cause is there: series of the server b, and of
// all servers if the name begins with *. No other alert tells of it, but for those that are named.
var faults = map[string]struct {
	changed world
	others  []string
}{
	"SetpointNoLeader":            {changed: world{"*setpoint_store_leader{}": "0x90", "*setpoint_store_has_leader{}": "0x90"}},
	"SetpointServerDown":          {changed: world{"up{}": "1x10 0x80"}},
	"SetpointServerWithoutLeader": {changed: world{"setpoint_store_has_leader{}": "1x10 0x80"}},
	"SetpointServerBehind":        {changed: world{"setpoint_store_applied_index{}": "990x90"}},
	"SetpointLeaderChangesOften":  {changed: world{"setpoint_store_elections_total{}": "3+1x90"}},
	"SetpointServerRestarts":      {changed: world{"process_start_time_seconds{}": "100+100x90"}},
	"SetpointDisksLow":            {changed: world{"*setpoint_disk_low{}": "0x10 1x80"}, others: []string{"SetpointDiskLow"}},
	"SetpointDiskLow":             {changed: world{"setpoint_disk_low{}": "0x10 1x80"}},
	"SetpointDiskFull":            {changed: world{"setpoint_disk_full{}": "0x10 1x80"}},
	"SetpointDiskSlow":            {changed: world{"setpoint_store_sync_p99_seconds{}": "0.5x90"}},
	"SetpointObjectsNearLimit":    {changed: world{"setpoint_objects_bytes{}": "5000+50x90"}},
	"SetpointBackupMissing":       {changed: world{"setpoint_backup_due_timestamp_seconds{}": "60x90"}},
	"SetpointNobodyActs":          {changed: world{`*leader_election_master_status{name="kube-scheduler"}`: "0x90"}},
	"SetpointLoopFails":           {changed: world{`setpoint_loop_failing_keys{name="deployment"}`: "2x90"}},
	"SetpointLoopInCircles":       {changed: world{`setpoint_loop_circles_total{name="deployment"}`: "0x10 1x80"}},
	"SetpointPodsFitNowhere":      {changed: world{`scheduler_pending_pods{queue="unschedulable"}`: "3x90"}},
	"SetpointRequestsFail":        {changed: world{`apiserver_request_total{code="500"}`: "0+100x90"}},
	"SetpointRequestsSlow":        {changed: world{`*apiserver_request_sli_duration_seconds_bucket{verb="GET",le="0.1"}`: "0+900x90"}},
	"SetpointRequestsRefused":     {changed: world{`apiserver_flowcontrol_rejected_requests_total{priority_level="workload-low"}`: "0+60x90"}},
	"SetpointSharesTaken":         {changed: world{`setpoint_shares_refused_total{of="watches"}`: "0+60x90"}},
	"SetpointAuditLost":           {changed: world{"setpoint_audit_events_lost_total{}": "0x10 1x80"}},
	"SetpointCertificatesExpire":  {changed: world{`apiserver_client_certificate_expiration_seconds_bucket{le="604800"}`: "0+1x90"}},
	"SetpointCertificateEnds":     {changed: world{`*setpoint_certificate_expiry_timestamp_seconds{kind="node",name="n1"}`: "86400x90"}},
	"SetpointNodeDown":            {changed: world{`up{job="nodes",instance="n2"}`: "1x10 0x80"}},
	"SetpointPodsEvicted":         {changed: world{`node_collector_evictions_total{zone=""}`: "0x10 4x80"}},
}

// TestALeaderThatIsLost: its series are gone and the others know another one, or will in a moment. That is one server that is down.
func TestALeaderThatIsLost(t *testing.T) {
	w := healthy()
	for series, values := range w {
		if strings.Contains(series, `instance="a"`) { // healthy until then: what else it told would be told of it for as long as Prometheus looks back
			w[series] = strings.TrimSuffix(values, "x90") + "x10 _x80"
		}
	}
	w[`up{job="apiserver",instance="a"}`] = "1x10 0x80"
	if told := firing(t, w, readAlerts(t)); !slices.Equal(told, []string{"SetpointServerDown"}) {
		t.Errorf("%v are told", told)
	}
}

// TestACertificateThatWasRenewed: a server that the node has left still knows the former one, and nothing is told.
func TestACertificateThatWasRenewed(t *testing.T) {
	w := healthy().apply(t, world{`setpoint_certificate_expiry_timestamp_seconds{kind="node",name="n1"}`: "86400x90"})
	if told := firing(t, w, readAlerts(t)); len(told) > 0 {
		t.Errorf("%v are told", told)
	}
}

// apply is the world with a change.
func (w world) apply(t *testing.T, changed world) world {
	t.Helper()
	w = maps.Clone(w)
	for series, values := range changed {
		name, all := strings.CutPrefix(series, "*")
		hit := false
		for _, instance := range []string{"a", "b", "c"} {
			if instance != "b" && !all {
				continue
			}
			own := strings.Replace(name, "{", `{job="apiserver",instance="`+instance+`",`, 1)
			own = strings.Replace(own, ",}", "}", 1)
			if _, there := w[own]; there {
				w[own], hit = values, true
			}
		}
		if _, there := w[name]; there {
			w[name], hit = values, true
		}
		if !hit {
			t.Fatalf("the healthy world has no %s", series)
		}
	}
	return w
}

// firing are the alerts that the rules tell of a world within 45 minutes, each once.
func firing(t *testing.T, w world, groups *rulefmt.RuleGroups) (names []string) {
	t.Helper()
	text := &strings.Builder{}
	fmt.Fprintln(text, "load 30s")
	for _, series := range slices.Sorted(maps.Keys(w)) {
		fmt.Fprintf(text, "  %s %s\n", series, w[series])
	}
	store := promqltest.LoadedStorage(t, text.String())
	t.Cleanup(func() { _ = store.Close() })
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, 1e6), store)
	eachAlert(t, groups, func(r rulefmt.Rule, expr parser.Expr) {
		alert := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
			labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
		for at := time.Duration(0); at <= 45*time.Minute; at += 30 * time.Second {
			if _, err := alert.Eval(t.Context(), 0, time.Unix(0, 0).Add(at), query, nil, 0); err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			fires := func(a *rules.Alert) bool { return a.State == rules.StateFiring }
			if slices.ContainsFunc(alert.ActiveAlerts(), fires) {
				names = append(names, r.Alert)
				return
			}
		}
	})
	return names
}

// eachAlert calls for each rule of the file.
func eachAlert(t *testing.T, groups *rulefmt.RuleGroups, call func(rulefmt.Rule, parser.Expr)) {
	t.Helper()
	for _, group := range groups.Groups {
		for _, r := range group.Rules {
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			call(r, expr)
		}
	}
}

func readAlerts(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	content, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups
}

// TestAlertsAreToldByTheirCause: each alert fires when its cause is there, no other does, and none does of a healthy cluster.
func TestAlertsAreToldByTheirCause(t *testing.T) {
	groups := readAlerts(t)
	if told := firing(t, healthy(), groups); len(told) > 0 {
		t.Errorf("of a healthy cluster: %v", told)
	}
	eachAlert(t, groups, func(r rulefmt.Rule, _ parser.Expr) {
		fault, known := faults[r.Alert]
		if !known {
			t.Errorf("%s: no world has its cause", r.Alert)
			return
		}
		want := append(fault.others, r.Alert)
		told := firing(t, healthy().apply(t, fault.changed), groups)
		slices.Sort(want)
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("%s: %v are told, not %v", r.Alert, told, want)
		}
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: severity, summary or description is missing", r.Alert)
		}
	})
}
