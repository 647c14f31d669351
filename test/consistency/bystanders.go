package consistency

import (
	"context"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/nemesis"
	"github.com/setpoint-io/setpoint/test/consistency/pods"
)

// startPods runs a pod on each node, where there are nodes.
func (r *run) startPods(ctx context.Context) (err error) {
	if r.Cluster.Can(cluster.Agents) {
		r.pods, err = pods.Start(ctx, r.Cluster, nemesis.SettleTimeout)
		r.report.pods = cluster.Nodes
	}
	return err
}

// lookAtPods finds those that did not live through what was done to the servers.
func (r *run) lookAtPods(ctx context.Context, after string) {
	if r.pods == nil {
		return
	}
	harmed, err := r.pods.Harmed(ctx, nemesis.SettleTimeout)
	if err != nil {
		r.report.find("pods after %s: %v", after, err)
	}
	for _, line := range harmed {
		r.report.find("pods after %s: %s", after, line)
	}
}
