package agent

import (
	"context"
	"net"

	"github.com/setpoint-io/setpoint/agent/api/kubeletapi"
	"github.com/setpoint-io/setpoint/agent/api/kubeletapi/access"
)

// serve answers on the kubelet's port until ctx ends.
func (a *agent) serve(ctx context.Context, listener net.Listener, runner *podRunner) {
	guard := access.New(access.Config{
		Node: a.NodeName, Client: a.Client, ServersOnly: kubeletapi.ServersOnly, Nodes: kubeletapi.NodesToo,
		NoTokens: a.Settings.NoTokens, TokenTTL: a.Settings.TokenTTL, AllowedTTL: a.Settings.AllowedTTL,
		DeniedTTL: a.Settings.DeniedTTL, Revoked: a.Revoked, Logger: a.Logger,
	})
	if a.ServerTLS == nil {
		guard = nil
	}
	err := kubeletapi.Run(ctx, listener, kubeletapi.Config{
		NodeName: a.NodeName, Runtime: a.Runtime, Pods: runner.manager, Dirs: a.dirs(),
		LocalVolumes: a.local, VolumeStats: runner.volumeStats, Collectors: a.collectors(), RuntimeName: a.runtimeName(ctx),
		Layers: a.Layers, NoProfiles: a.Settings.NoProfiles, Pages: a.Settings.Pages, QuotaPeriod: a.Settings.QuotaPeriod,
		Configuration: func() any { return a.Settings.Effective() },
		ProbeCounts:   runner.manager.ProbeCounts, TLS: a.ServerTLS, Guard: guard, Version: a.Version, Logger: a.Logger,
	})
	if err != nil && ctx.Err() == nil {
		a.Logger.Error("the kubelet endpoints ended", "err", err)
	}
}

// portOf is the port clients dial, 0 for a listener without one.
func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
