package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// authorityRing is how this server holds the certificate authority: its certificate is one of the authority that signs, its trust folder
// says so, and whoever has shown a certificate of one that is dropped is judged again.
func (a *api) authorityRing() rotations.Mechanism {
	authority := a.config.Trust.CA
	a.config.revoked.Believe(authority.KeyIDs())
	return rotations.KeyRing{
		Ring: authority.Ring(),
		Make: func() ([]byte, string, error) { return trust.MakeAuthority(time.Now()) },
		Changed: func() error {
			if err := a.config.identity.keeper.FollowAuthorities(time.Now()); err != nil {
				return err
			}
			a.config.revoked.Believe(authority.KeyIDs())
			return nil
		},
	}
}

// authorityFollowers are the nodes and the bundles in namespaces, which follow the rotation of the certificate authority too.
func (a *api) authorityFollowers(client kubernetes.Interface) *rotations.Authorities {
	return &rotations.Authorities{
		Nodes: a.config.liveness.LackingAuthorities,
		Waits: func(ctx context.Context, _ rotation.State, members []rotation.Member) []rotation.Waiting {
			nodes, err := a.certifiedNodes(ctx, client)
			if err != nil {
				return []rotation.Waiting{{Member: "the nodes", Why: "they cannot be listed: " + err.Error()}}
			}
			waits := rotation.Unsure(members, nodes, a.config.liveness.IsAway)
			return append(waits, unpublished(ctx, client, string(a.config.Trust.CA.CertPEM()))...)
		},
	}
}

// certifiedNodes are the nodes with our agent that are not shut out.
func (a *api) certifiedNodes(ctx context.Context, client kubernetes.Interface) (names []string, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		if node.Annotations[trust.NodeKeyAnnotation] != "" && !a.config.liveness.IsRevoked(node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, nil
}

// unpublished are the namespaces whose pods are not told yet whom to believe, in one line.
func unpublished(ctx context.Context, client kubernetes.Interface, bundle string) []rotation.Waiting {
	maps, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{
		ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, rootca.Name).String(),
	})
	if err != nil {
		return []rotation.Waiting{{Member: "the namespaces", Why: "their ConfigMaps cannot be listed: " + err.Error()}}
	}
	var lacking []string
	for _, m := range maps.Items {
		if m.Data[rootca.Key] != bundle && m.DeletionTimestamp == nil {
			lacking = append(lacking, m.Namespace)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	slices.Sort(lacking)
	named := strings.Join(lacking[:min(len(lacking), rotation.LackingMax)], ", ")
	if more := len(lacking) - rotation.LackingMax; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []rotation.Waiting{{Member: "namespaces " + named, Why: "their ConfigMaps " + rootca.Name + " have not taken the change yet"}}
}
