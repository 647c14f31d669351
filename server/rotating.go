package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// newRotations makes this server follow what is rotated, beginning with what it knows.
func (a *api) newRotations(client kubernetes.Interface, peer func(name, address string) (*http.Client, string)) *rotations.Rotations {
	keeper := a.config.identity.keeper
	return rotations.New(rotations.Config{
		Name: a.config.Name, Servers: a.config.servers, Ask: admin.AskHeld(peer),
		Life:    func() string { return a.config.log.Root().Life },
		Storage: a.storage, Client: client, Locker: trust.Locker{CA: a.config.Trust.CA}, Clock: a.config.Clock, Logger: a.config.Logger,
		Mechanisms: map[rotation.Kind]rotations.Mechanism{
			rotation.Serving:    &rotations.Certificates{Issued: keeper.Issued, Renew: keeper.Renew, Now: a.config.Clock.Now},
			rotation.AccountKey: rotations.KeyRing{Ring: a.config.Trust.AccountKeys, Make: trust.MakeAccountKey},
			rotation.CA:         a.authorityRing(),
			rotation.GossipKey: rotations.KeyRing{
				Ring: a.config.Trust.GossipKeys, Make: trust.MakeGossipKey,
				Changed: func() error { return errors.Join(a.config.Trust.GossipKeys.Settle(), a.config.liveness.UseKeys()) },
			},
			rotation.EncryptionKey: a.sealing,
			rotation.FrontProxy: rotations.Proxies{
				KeyRing: rotations.KeyRing{
					Ring: a.proxyAuthorities, Make: func() ([]byte, string, error) { return trust.MakeFrontProxy(a.config.Clock.Now()) },
					Changed: a.tellOfProxies,
				},
				IsTold: a.isFrontProxyTold,
			},
		},
		Followed:    a.noteFollowed,
		CaughtUp:    func(ctx context.Context) error { return a.access.RevocationsAt(ctx, a.storage.Revision()) },
		Authorities: a.authorityFollowers(client),
		Nodes: &rotations.Nodes{
			Lacking: a.config.liveness.LackingKeys,
			Away: func(ctx context.Context) ([]string, error) {
				return nodesAway(ctx, client, a.config.liveness.IsAway)
			},
		},
	})
}

// firsts are closed, each once, when this server knows which key of a kind counts.
type firsts map[rotation.Kind]first

type first struct {
	closed chan struct{}
	once   *sync.Once
}

func newFirsts(kinds ...rotation.Kind) firsts {
	all := firsts{}
	for _, kind := range kinds {
		all[kind] = first{make(chan struct{}), &sync.Once{}}
	}
	return all
}

func (a *api) noteFollowed(kind rotation.Kind) {
	if f, ok := a.followed[kind]; ok {
		f.once.Do(func() { close(f.closed) })
	}
}

// tellOfProxies makes the leader tell aggregated servers at once of the authorities that it has.
func (a *api) tellOfProxies() error {
	a.frontProxy.NoteChange()
	return nil
}

// isFrontProxyTold reports whether this replica has the ConfigMap by which aggregated servers know this server. It waits for nothing: a
// replica that has not caught up since its start does not know.
func (a *api) isFrontProxyTold() bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	table := a.storage.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	told, err := table.Get(ended, metav1.NamespaceSystem, aggregation.AuthenticationName, "0")
	return err == nil && a.frontProxy.IsTold(told.Object().(*corev1.ConfigMap).Data)
}

// nodesAway are the nodes with our agent that hold no session and are not shut out, as rotation.Progress.Away.
func nodesAway(ctx context.Context, client kubernetes.Interface, isAway func(node string) bool) (away []string, err error) {
	away, err = ourNodes(ctx, client, isAway)
	slices.Sort(away)
	if more := len(away) - rotation.LackingMax; more > 0 {
		away = append(away[:rotation.LackingMax], fmt.Sprintf("and %d more", more))
	}
	return away, err
}

// ourNodes are the nodes with our agent of which something is so.
func ourNodes(ctx context.Context, client kubernetes.Interface, is func(node string) bool) (names []string, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		if node.Annotations[trust.NodeKeyAnnotation] != "" && is(node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, nil
}
