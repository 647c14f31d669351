package server

import (
	"context"
	"sync"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/removed"
)

// answerRemoved tells whoever asks that this server was removed, until ctx ends. It opens nothing of what the server has stored.
func (o *Parsed) answerRemoved(ctx context.Context, cluster *trust.Cluster) error {
	identity, err := newIdentity(Config{
		Name: o.Name, Trust: cluster, InitialServers: o.servers, AdvertiseAddress: o.AdvertiseAddress,
		Cluster: o.cluster, Clock: clock.RealClock{}, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	why := raftstore.RemovedError(o.Name, identity.self.Endpoint)
	if err := removed.Note(o.DataDir); err != nil {
		o.Logger.Warn("after its next start this server has to ask the others again", "err", err)
	}
	listener, err := process.Listen(o.listenAddress(o.servers), process.AdvertiseFlag)
	if err != nil {
		return err
	}
	o.Logger.Error(why.Error(), "answers", "nothing else")
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { identity.keeper.Run(ctx) })
	defer o.service.Stopping()
	o.service.Does(why.Error(), nil)
	defer renewing.Wait()
	defer cancel()
	return removed.Serve(ctx, listener, identity.live, removed.Handler(o.Name, why), o.Logger)
}
