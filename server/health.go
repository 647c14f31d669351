package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/diskroom"
	"github.com/setpoint-io/setpoint/server/term"
)

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

var errNoSystemObjects = errors.New("the system namespaces are not there yet")

// check fails until this replica answers reads and writes and the cluster has its system objects.
func (a *api) check(ctx context.Context) error {
	return errors.Join(a.checkLog(ctx), a.checkSystem(ctx))
}

// checks are what /readyz asks: "encryption" fails while this server cannot read
// something, "disk" while this server falls behind because its disk is full or slow, "kms-providers", as upstream's, while a
// plugin does not work.
func (a *api) checks() []discovery.Check {
	checks := []discovery.Check{
		{
			Name:  "log",
			Check: a.checkLog,
		}, {Name: "disk", Check: a.checkDisk}, {Name: "system-objects", Check: a.checkSystem},
		{Name: "shutdown", Check: a.config.drain.Check}, {Name: "encryption", Check: a.atRest.Check},
	}
	if a.config.Encryption.File != "" {
		checks = append(checks, discovery.Check{Name: "kms-providers", Check: a.atRest.CheckPlugins})
	}
	return checks
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
	return a.room().Check(ctx)
}

func (a *api) room() diskroom.Room {
	return func() diskroom.Space { return diskroom.Space(a.config.log.Space()) }
}
