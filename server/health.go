package server

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/diskroom"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/server/loops"
	"github.com/setpoint-io/setpoint/server/term"
)

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

var errNoSystemObjects = errors.New("the system namespaces are not there yet")

// check fails until this replica answers reads and writes and the cluster has its system objects.
func (a *api) check(ctx context.Context) error {
	return errors.Join(a.checkLog(ctx), a.checkSystem(ctx))
}

// checks are what /readyz asks: "encryption" fails while this server cannot read
// something, "disk" while this server falls behind because its disk is full, "kms-providers", as upstream's, while a plugin does not work.
func (a *api) checks() []discovery.Check {
	checks := []discovery.Check{
		{
			Name:  "log",
			Check: a.checkLog,
		}, {Name: "disk", Check: a.room().Check}, {Name: "system-objects", Check: a.checkSystem},
		{Name: "shutdown", Check: a.config.drain.Check}, {Name: "encryption", Check: a.atRest.Check},
	}
	if a.config.Encryption.File != "" {
		checks = append(checks, discovery.Check{Name: "kms-providers", Check: a.atRest.CheckPlugins})
	}
	return checks
}

// checkLog fails while no majority answers.
func (a *api) checkLog(ctx context.Context) error {
	_, err := a.config.log.ReadIndex(ctx)
	return err
}

// checkSystem fails until the leader has made what every cluster has.
func (a *api) checkSystem(context.Context) error {
	if namespaces := a.storage.Table(namespacesResource).Count(); namespaces < len(term.SystemNamespaces) {
		return errNoSystemObjects
	}
	return nil
}

func (a *api) room() diskroom.Room {
	return func() diskroom.Space { return diskroom.Space(a.config.log.Status().Space) }
}

func (a *api) metrics(fair *flowcontrol.Fairness) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("setpoint_revision", "Newest revision applied on this replica.", func() float64 { return float64(a.storage.Revision()) })
	gauge(
		"setpoint_objects_bytes",
		"What all objects take in memory.",
		func() float64 { return float64(a.config.log.Status().ObjectsBytes) },
	)
	gauge(
		"setpoint_objects_limit_bytes",
		"What they may take if this server leads.",
		func() float64 { return float64(a.config.log.Status().ObjectsLimitBytes) },
	)
	registry.MustRegister(a.room().Metrics()...)
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "setpoint_store_step_downs_total", Help: "How often this server stopped leading because most servers did not answer in time.",
	}, func() float64 { return float64(a.config.log.Status().StepDowns) }))
	registry.MustRegister(fair, loops.Metrics{Ledger: a.numbers})
	if a.config.AuditLog != nil {
		registry.MustRegister(a.config.AuditLog.Lost())
	}
	return registry
}
