package daemonset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// status counts nodes. The oldest pod of a node speaks for it.
func (p *pass) status() appsv1.DaemonSetStatus {
	s := appsv1.DaemonSetStatus{
		CollisionCount: p.ds.Status.CollisionCount, Conditions: p.ds.Status.Conditions, ObservedGeneration: p.ds.Status.ObservedGeneration,
	}
	if p.seen.settled { // else nothing is done about this generation yet
		s.ObservedGeneration = p.ds.Generation
	}
	for node, v := range p.verdicts {
		pods := p.pods[node]
		switch {
		case !v.run && len(pods) > 0:
			s.NumberMisscheduled++
		case v.run:
			s.DesiredNumberScheduled++
		}
		if !v.run || len(pods) == 0 {
			continue
		}
		s.CurrentNumberScheduled++
		if podstate.Ready(pods[0]) {
			s.NumberReady++
		}
		if p.available(pods[0]) {
			s.NumberAvailable++
		}
		if current(p.ds, p.seen.hash, pods[0]) {
			s.UpdatedNumberScheduled++
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	return s
}

// writeStatus writes the status unless it is already so.
func (c *controller) writeStatus(ctx context.Context, ds *appsv1.DaemonSet, status appsv1.DaemonSetStatus) error {
	if apiequality.Semantic.DeepEqual(ds.Status, status) {
		return nil
	}
	next := ds.DeepCopy()
	next.Status = status
	_, err := c.env.Client.AppsV1().DaemonSets(ds.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
