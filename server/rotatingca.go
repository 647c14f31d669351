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

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// idsOfAuthority is how many of CA.KeyIDs are of one authority: its own, and that of the authority that follows from it. The first ones
// are of the one that signs.
const idsOfAuthority = 2

// authorityRing is how this server holds the certificate authority: its certificate is one of the authority that signs, its trust folder
// says so, and whoever has shown a certificate of one that is dropped is judged again.
func (a *api) authorityRing() rotations.Mechanism {
	authority := a.config.Trust.CA
	a.config.revoked.Believe(authority.KeyIDs())
	return rotations.KeyRing{
		Ring: authority.Ring(), WasDropped: authority.Dropped,
		Make: func() ([]byte, string, error) { return trust.MakeAuthority(a.config.Clock.Now()) },
		Changed: func() error {
			if err := a.config.identity.keeper.FollowAuthorities(a.config.Clock.Now()); err != nil {
				return err
			}
			ids := authority.KeyIDs()
			a.config.revoked.Believe(ids)
			a.config.revoked.NoteFormer(ids[idsOfAuthority:], a.config.Clock.Now)
			return nil
		},
	}
}

// authorityFollowers are the nodes and the bundles in namespaces, which follow the rotation of the certificate authority too.
func (a *api) authorityFollowers(client kubernetes.Interface) *rotations.Authorities {
	return &rotations.Authorities{
		Nodes:  a.config.liveness.LackingAuthorities,
		Former: a.config.revoked.Former,
		Waits: func(ctx context.Context, _ rotation.State, members []rotation.Member) []rotation.Waiting {
			nodes, err := ourNodes(ctx, client, func(name string) bool { return !a.config.liveness.IsRevoked(name) })
			if err != nil {
				return []rotation.Waiting{{Member: "the nodes", Why: "they cannot be listed: " + err.Error()}}
			}
			waits := rotation.Unsure(members, nodes, a.config.liveness.IsAway, a.ended)
			return append(waits, unpublished(ctx, client, string(a.config.Trust.CA.CertPEM()))...)
		},
	}
}

// ended is when the newest certificate has ended that a node has shown to this server, "" if it has not.
func (a *api) ended(node string) string {
	end := a.access.NodeKeys.Ends(node)
	if end.IsZero() || a.config.Clock.Now().Before(end) {
		return ""
	}
	return end.UTC().Format(time.RFC3339)
}

// unpublished are what pods and aggregated servers read and does not tell yet whom to believe: the namespaces in one line.
func unpublished(ctx context.Context, client kubernetes.Interface, bundle string) []rotation.Waiting {
	lacking, fixed, err := lackingNamespaces(ctx, client, bundle)
	if err != nil {
		return []rotation.Waiting{{Member: "the namespaces", Why: "they and their ConfigMaps cannot be listed: " + err.Error()}}
	}
	waits := namespacesWaiting(fixed, "their ConfigMaps "+rootca.Name+" are immutable: delete them, others are made")
	waits = append(waits, namespacesWaiting(lacking, "their ConfigMaps "+rootca.Name+" have not taken the change yet")...)
	cached := metav1.GetOptions{ResourceVersion: "0"}
	told, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, aggregation.AuthenticationName, cached)
	switch {
	case err != nil:
		waits = append(waits, rotation.Waiting{Member: "ConfigMap " + aggregation.AuthenticationName, Why: "it cannot be read: " + err.Error()})
	case told.Data[aggregation.ClientCAs] != bundle:
		waits = append(waits, rotation.Waiting{Member: "ConfigMap " + aggregation.AuthenticationName, Why: "it has not taken the change yet"})
	}
	return waits
}

// lackingNamespaces are those that stay and whose bundle is another or missing; fixed are those in which nobody can change it.
func lackingNamespaces(ctx context.Context, client kubernetes.Interface, bundle string) (lacking, fixed []string, err error) {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, nil, err
	}
	maps, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{
		ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, rootca.Name).String(),
	})
	if err != nil {
		return nil, nil, err
	}
	told, immutable := map[string]bool{}, map[string]bool{}
	for _, m := range maps.Items {
		told[m.Namespace] = m.Data[rootca.Key] == bundle
		immutable[m.Namespace] = m.Immutable != nil && *m.Immutable
	}
	for _, n := range namespaces.Items {
		switch {
		case told[n.Name] || n.DeletionTimestamp != nil:
		case immutable[n.Name]:
			fixed = append(fixed, n.Name)
		default:
			lacking = append(lacking, n.Name)
		}
	}
	return lacking, fixed, nil
}

func namespacesWaiting(names []string, why string) []rotation.Waiting {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	named := strings.Join(names[:min(len(names), rotation.LackingMax)], ", ")
	if more := len(names) - rotation.LackingMax; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []rotation.Waiting{{Member: "namespaces " + named, Why: why}}
}
