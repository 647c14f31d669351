package server

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// joinService certifies machines that join and nodes that renew.
func (a *api) joinService(client kubernetes.Interface) apiserver.Service {
	known := auth.NewBootstrapTokens(a.storage)
	// It has seats of its own: those of clients without a name are anybody's.
	return apiserver.Service{Prefix: join.Path, Traffic: apiserver.Streams, Handler: join.NewHandler(join.HandlerConfig{
		Authority: a.config.Trust.CA, Serving: a.config.identity.nodeServing, GossipKeys: a.config.Trust.GossipKeys.Told,
		Services: a.config.PodNetwork.ServiceRanges(),
		Admits: func(ctx context.Context, token tokens.Token) (bool, error) {
			return jointoken.Judge(ctx, client, a.config.Trust.NodeToken, token, known.Admits)
		},
		Take:    func(ctx context.Context, id, node string) error { return jointoken.Take(ctx, client, id, node) },
		Claim:   join.Names{Nodes: client.CoreV1().Nodes()}.Claim,
		Servers: a.namesOfServers,
		Follows: a.followsRotations,
		Revoked: func(tokenID, node, keyHash string) error {
			return a.config.revoked.Revoked(revocation.Identity{User: trust.NodeUser(node), Token: tokenID, Key: keyHash})
		},
		Now: a.config.Clock.Now, Logger: a.config.Logger,
	})}
}

// joinServerService lets other servers have the keys of the cluster, who have a token for servers.
func (a *api) joinServerService(client kubernetes.Interface) apiserver.Service {
	authority := a.config.Trust.CA
	return apiserver.Service{Prefix: join.ServerPath, Traffic: apiserver.Streams, Handler: join.NewServerHandler(join.ServerHandlerConfig{
		Admit: func(ctx context.Context, token tokens.Token) error {
			return jointoken.AdmitServer(ctx, client, authority, token, a.storage.Now())
		},
		Take: func(ctx context.Context, token tokens.Token, server trust.Server) error {
			return jointoken.TakeServer(ctx, client, authority, token, server, a.storage.Now())
		},
		Free:    func(ctx context.Context, name string) error { return nameIsNoNodes(ctx, client, name) },
		Follows: a.followsRotations,
		Revoked: func(tokenID, name string) error {
			return a.config.revoked.Revoked(revocation.Identity{User: trust.ServerUser(name), Token: tokenID})
		},
		Shared: a.config.Trust.Shared, Servers: a.config.servers, Logger: a.config.Logger,
	})}
}

// followsRotations reports whether keys may be handed out: before that this server may not know yet who was shut out, and since when.
func (a *api) followsRotations() bool { return a.rotations.Begun() }

// nameIsNoNodes fails with join.ErrServerNameTaken where a Node has the name.
func nameIsNoNodes(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s is a node", join.ErrServerNameTaken, name)
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// serverToken makes a token for servers.
func (a *api) serverToken(client kubernetes.Interface) func(context.Context, jointoken.Wanted) (*jointoken.Token, error) {
	return func(ctx context.Context, wanted jointoken.Wanted) (*jointoken.Token, error) {
		if _, err := a.config.Trust.Shared(); err != nil {
			return nil, err
		}
		return jointoken.CreateServer(ctx, client, a.config.Trust.CA, wanted, a.storage.Now())
	}
}

// namesOfServers are those whose names no node gets: all founders, whether they are still members or not, and all members.
func (a *api) namesOfServers() []trust.Server {
	return slices.Concat(a.config.InitialServers, a.config.servers())
}
