package server

import (
	"context"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
)

// joinService certifies machines that join and nodes that renew.
func (a *api) joinService(client kubernetes.Interface) apiserver.Service {
	tokens := auth.NewBootstrapTokens(a.storage)
	// It has seats of its own: those of clients without a name are anybody's.
	return apiserver.Service{Prefix: join.Path, Traffic: apiserver.Streams, Handler: join.NewHandler(join.HandlerConfig{
		Authority: a.config.Trust.CA, Serving: a.config.identity.nodeServing, GossipKey: a.config.Trust.GossipKey,
		Services: a.config.PodNetwork.ServiceRanges(),
		Admits: func(ctx context.Context, token trust.Token) (bool, error) {
			return jointoken.Judge(ctx, client, a.config.Trust.NodeToken, token, tokens.Admits)
		},
		Take:    func(ctx context.Context, id, node string) error { return jointoken.Take(ctx, client, id, node) },
		Claim:   join.Names{Nodes: client.CoreV1().Nodes()}.Claim,
		Servers: a.namesOfServers,
		Revoked: func(tokenID, node, keyHash string) error {
			return a.config.revoked.Revoked(revocation.Identity{User: trust.NodeUser(node), Token: tokenID, Key: keyHash})
		},
		Logger: a.config.Logger,
	})}
}

// namesOfServers are those whose names no node gets: all founders, whether they are still members or not, and all members.
func (a *api) namesOfServers() []trust.Server {
	return slices.Concat(a.config.InitialServers, a.config.servers())
}
