package server

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/server/leader"
	"github.com/setpoint-io/setpoint/server/loops"
)

// metrics are what /metrics shows. The registry is this server's own: a process may have several.
func (a *api) metrics(fair *flowcontrol.Fairness) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(a.room().metrics()...)
	registry.MustRegister(fair, a.requests, a.admissionMetrics, a.shares.Metrics(), a.door)
	registry.MustRegister(loops.Metrics{Ledger: a.numbers, Now: a.config.Clock.Now}, buildInfo(), storeMetrics{a}, a.expiries())
	if a.config.Processor != nil {
		registry.MustRegister(a.config.Processor)
	}
	registry.MustRegister(a.config.maker.Metrics()...)
	if a.config.AuditLog != nil {
		registry.MustRegister(a.config.AuditLog.Lost())
	}
	return prometheus.Gatherers{registry, ofWebhooks(legacyregistry.DefaultGatherer)}
}

// webhookPrefixes are of the names of metrics that upstream's code keeps of webhooks, policies and issuers of tokens. They are the
// process's, not one server's.
var webhookPrefixes = []string{
	"apiserver_authentication_jwt_authenticator_", "apiserver_authorization_webhook_", "apiserver_authorization_match_condition_",
	"apiserver_manifest_admission_config_controller_",
	"apiserver_admission_webhook_", "apiserver_admission_match_condition_",
	"apiserver_validating_admission_policy_", "apiserver_mutating_admission_policy_",
}

// ofWebhooks gathers those alone.
func ofWebhooks(all prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := all.Gather()
		return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
			return !slices.ContainsFunc(webhookPrefixes, func(prefix string) bool { return strings.HasPrefix(f.GetName(), prefix) })
		}), err
	})
}

// buildInfo is upstream's kubernetes_build_info: what /version says.
func buildInfo() prometheus.Collector {
	v := discovery.VersionInfo(process.Version)
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubernetes_build_info", Help: "Always 1; the labels say what this server was built from.",
		ConstLabels: prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit, "git_tree_state": v.GitTreeState,
			"build_date": v.BuildDate, "go_version": v.GoVersion, "compiler": v.Compiler, "platform": v.Platform,
		},
	}, func() float64 { return 1 })
}

// storeMetrics shows what this replica stores and what its log does. It costs when somebody looks; counting objects takes time
// linear in their number.
type storeMetrics struct{ api *api }

func storeDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// The first three are upstream's.
var (
	storedObjects   = storeDesc("apiserver_storage_objects", "Stored objects by kind.", "resource")
	resourceObjects = storeDesc("apiserver_resource_objects", "Stored objects by kind.", "group", "resource")
	masterStatus    = storeDesc("leader_election_master_status", "Whether this server runs the loops of that name: 1 or 0.", "name")

	revision     = storeDesc("setpoint_revision", "Newest revision applied on this replica.")
	objectsBytes = storeDesc("setpoint_objects_bytes", "What all objects take in memory.")
	objectsLimit = storeDesc("setpoint_objects_limit_bytes", "What they may take if this server leads.")
	stepDowns    = storeDesc("setpoint_store_step_downs_total",
		"How often this server stopped leading because most servers did not answer in time.")
	elections = storeDesc("setpoint_store_elections_total", "How many leaders this server has known since it started, one for each term.")

	storeLeader     = storeDesc("setpoint_store_leader", "Whether this server leads the log: 1 or 0.")
	storeKnown      = storeDesc("setpoint_store_has_leader", "Whether this server knows who leads the log: 1 or 0.")
	storeTerm       = storeDesc("setpoint_store_term", "Term of the log, which grows with each election.")
	storeLast       = storeDesc("setpoint_store_last_index", "Newest entry in the log of this server.")
	storeCommit     = storeDesc("setpoint_store_commit_index", "Newest entry that this server knows to be on the disks of a majority.")
	storeApplied    = storeDesc("setpoint_store_applied_index", "Newest entry that this server has applied.")
	storageSize     = storeDesc("apiserver_storage_size_bytes", "Size of the log on the disk of this server.", "storage_cluster_id")
	storeLogBytes   = storeDesc("setpoint_store_log_bytes", "Size of the log on the disk of this server.")
	storeSyncP99    = storeDesc("setpoint_store_sync_p99_seconds", "Time within which 99 of 100 recent writes were on the disk of this server.")
	storeApplyMax   = storeDesc("setpoint_store_apply_max_seconds", "Longest time that an entry or a snapshot kept the state machine busy lately.")
	storeMetricsAll = []*prometheus.Desc{
		storageSize, storedObjects, resourceObjects, masterStatus, revision, objectsBytes, objectsLimit, stepDowns, elections, storeLeader,
		storeKnown, storeTerm, storeLast, storeCommit, storeApplied, storeLogBytes, storeSyncP99, storeApplyMax,
	}
)

// Describe implements prometheus.Collector.
func (storeMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range storeMetricsAll {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m storeMetrics) Collect(out chan<- prometheus.Metric) {
	status := m.api.config.log.Status()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	flag := func(d *prometheus.Desc, is bool, labels ...string) {
		value := 0.0
		if is {
			value = 1
		}
		gauge(d, value, labels...)
	}
	out <- prometheus.MustNewConstMetric(stepDowns, prometheus.CounterValue, float64(status.StepDowns))
	out <- prometheus.MustNewConstMetric(elections, prometheus.CounterValue, float64(status.Elections))
	gauge(revision, float64(m.api.storage.Revision()))
	gauge(objectsBytes, float64(status.ObjectsBytes))
	gauge(objectsLimit, float64(status.ObjectsLimitBytes))
	flag(storeLeader, status.Leader)
	flag(storeKnown, status.LeaderID != "")
	gauge(storeTerm, float64(status.Term))
	gauge(storeLast, float64(status.LastIndex))
	gauge(storeCommit, float64(status.CommitIndex))
	gauge(storeApplied, float64(status.AppliedIndex))
	gauge(storeLogBytes, float64(status.LogBytes))
	gauge(storageSize, float64(status.LogBytes), "log")
	gauge(storeSyncP99, status.SyncP99.Seconds())
	gauge(storeApplyMax, status.ApplyMax.Seconds())
	for _, name := range leader.LeaseNames() {
		flag(masterStatus, status.Leader, name)
	}
	m.collectObjects(gauge)
}

// collectObjects counts each kind once, whatever versions it is served in.
func (m storeMetrics) collectObjects(gauge func(*prometheus.Desc, float64, ...string)) {
	counted := map[string]bool{}
	for _, kind := range m.api.storage.Kinds() {
		gvr := kind.GroupVersionResource()
		name := strings.TrimSuffix(gvr.GroupResource().String(), ".")
		if counted[name] {
			continue
		}
		counted[name] = true
		count := float64(m.api.storage.Table(gvr).Count())
		gauge(storedObjects, count, name)
		gauge(resourceObjects, count, gvr.Group, gvr.Resource)
	}
}
