package clusterobjects

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// inconsistency is that of the ServiceCIDR kubernetes with the servers' flags: somebody gave it a range of IPv6, of which no Service
// gets an address.
type inconsistency struct {
	env   *reconcile.Env
	flags []string
	told  bool
}

// tell says it once, in upstream's words.
func (i *inconsistency) tell(ctx context.Context) error {
	have, err := i.env.Client.NetworkingV1().ServiceCIDRs().Get(ctx, podnetwork.ServiceCIDR, cached)
	if err != nil {
		return err
	}
	inconsistent := have.DeletionTimestamp == nil && !slices.Equal(have.Spec.CIDRs, i.flags)
	if inconsistent && !i.told {
		i.env.Events.Eventf(have, corev1.EventTypeWarning, "KubernetesDefaultServiceCIDRInconsistent",
			"The default ServiceCIDR [%s] does not match the controller flag configurations [%s]", strings.Join(have.Spec.CIDRs, " "), strings.Join(i.flags, " "))
	}
	i.told = inconsistent
	return nil
}
