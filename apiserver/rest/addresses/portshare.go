package addresses

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/shares"
)

var (
	services       = corev1.SchemeGroupVersion.WithResource("services")
	resourceQuotas = corev1.SchemeGroupVersion.WithResource("resourcequotas")
)

// nodePortShares is how node ports are divided among namespaces.
var nodePortShares = shares.Limits{All: int(nodePortMax - nodePortMin + 1)}

// CheckShare refuses a write of an object that claims more node ports, beyond those that it gives back, than its namespace may
// have: another one only if it then has no more of them than were left. A namespace whose ResourceQuota says a number of node
// ports has that number instead, and kube-system any.
func CheckShare(v *storage.View, o resource.Object, claims, releases []string) error {
	more := nodePortsAmong(claims) - nodePortsAmong(releases)
	holder := shares.Namespace(o.GetNamespace())
	if more <= 0 || holder.Privileged {
		return nil
	}
	has, err := nodePortsOf(v, o.GetNamespace())
	if err != nil {
		return err
	}
	full := shares.FullError{What: "node ports", Holder: holder.Name, Has: has, Taken: v.ClaimedOf(nodePortPool), All: nodePortShares.All}
	for ; more > 0 && nodePortShares.Fits(full.Has, full.Taken, 1); more-- {
		full.Has++
		full.Taken++
	}
	if more == 0 {
		return nil
	}
	if said, err := quotaSays(v, o.GetNamespace()); said || err != nil {
		return err
	}
	return apierrors.NewForbidden(services.GroupResource(), o.GetName(), &full)
}

func nodePortsAmong(claims []string) (n int) {
	for _, claim := range claims {
		if strings.HasPrefix(claim, storage.ClaimKey(nodePortPool, "")) {
			n++
		}
	}
	return n
}

func nodePortsOf(v *storage.View, namespace string) (n int, err error) {
	for o, err := range v.Snapshot(services).All(namespace) {
		if err != nil {
			return 0, err
		}
		n += nodePortsAmong(serviceClaims(o.(*corev1.Service)))
	}
	return n, nil
}

// quotaSays tells whether somebody has said how many node ports the namespace may have.
func quotaSays(v *storage.View, namespace string) (bool, error) {
	for o, err := range v.Snapshot(resourceQuotas).All(namespace) {
		if err != nil {
			return false, err
		}
		if _, said := o.(*corev1.ResourceQuota).Spec.Hard[corev1.ResourceServicesNodePorts]; said {
			return true, nil
		}
	}
	return false, nil
}
