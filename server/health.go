package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/server/term"
)

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

var errNoSystemObjects = errors.New("the system namespaces are not there yet")

// check fails until this replica answers reads and writes and the cluster has its system objects.
func (a *api) check(ctx context.Context) error {
	return errors.Join(a.checkLog(ctx), a.checkSystem(ctx))
}

// checks are what /healthz and /readyz ask: "encryption" fails while this server cannot read
// something, "disk" while this server falls behind because its disk is full or slow, "kms-providers", as upstream's, while a
// plugin does not work. No fault of the cluster makes /livez fail: a new start of this server would mend none.
func (a *api) checks() []discovery.Check {
	alive := discovery.Passes
	checks := []discovery.Check{
		{Name: "log", As: []string{"etcd"}, Check: a.checkLog, Live: alive},
		{Name: "disk", Check: a.checkDisk},
		{Name: "system-objects", As: startHooks(), Check: a.checkSystem, Live: alive},
		{Name: "informer-sync", Check: a.caches.Synced, OnlyReady: true},
		{Name: "shutdown", Check: a.config.drain.Check}, {Name: "encryption", Check: a.atRest.Check},
	}
	if a.config.Encryption.File != "" {
		checks = append(checks, discovery.Check{Name: "kms-providers", Check: a.atRest.CheckPlugins})
	}
	return checks
}

// startHooks are upstream's names of what its API server does after its start. Here a server that answers has done its part of that,
// and the leader has done its own when the system objects are there.
func startHooks() []string {
	const hook = "poststarthook/"
	return []string{
		hook + "start-apiserver-admission-initializer", hook + "generic-apiserver-start-informers", hook + "storage-readiness",
		hook + "start-apiextensions-informers", hook + "start-apiextensions-controllers", hook + "crd-informer-synced",
		hook + "bootstrap-controller", hook + "start-system-namespaces-controller", hook + "start-service-ip-repair-controllers",
		hook + "rbac/bootstrap-roles", hook + "scheduling/bootstrap-system-priority-classes",
		hook + "priority-and-fairness-config-consumer", hook + "priority-and-fairness-config-producer",
		hook + "start-cluster-authentication-info-controller", hook + "start-kube-aggregator-informers",
		hook + "apiservice-registration-controller", hook + "apiservice-status-local-available-controller",
		hook + "apiservice-status-remote-available-controller", hook + "kube-apiserver-autoregistration", "autoregister-completion",
		hook + "apiservice-openapi-controller",
	}
}

// checkLog fails while this server has no leader, which says why, and while no majority answers.
func (a *api) checkLog(ctx context.Context) error {
	if err := a.config.log.Leaderless(); err != nil {
		return err
	}
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

// checkDisk fails while a write has been under way for so long that a leader gives way, and while there is no room.
func (a *api) checkDisk(ctx context.Context) error {
	if waits, slow := a.config.log.DiskWaits(); slow {
		return fmt.Errorf("a write to the disk is not done after %v", waits.Round(time.Millisecond))
	}
	return a.room().check(ctx)
}

func (a *api) room() diskRoom {
	return func() diskSpace { return diskSpace(a.config.log.Space()) }
}
