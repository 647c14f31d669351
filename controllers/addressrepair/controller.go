package addressrepair

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Upstream's names and times.
const (
	name    = "ipallocator-repair-controller"
	manager = "ipallocator.k8s.io"
	// grace is how long a Service may take to come after its IPAddress, and freshGrace how long it may take to take it over.
	grace      = time.Minute
	freshGrace = 5 * time.Second
)

// rangePause is the wait for the first range of addresses.
const rangePause = 10 * time.Second

var addresses = reconcile.KindOf[*networkingv1.IPAddress](networkingv1.SchemeGroupVersion.WithResource("ipaddresses"))

// New repairs IPAddresses.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: name, OfAPI: true, Run: run,
		Reads: []reconcile.Read{reconcile.Services, reconcile.ServiceCIDRs, addresses},
	}
}

// work is the key of the loop: a Service or an IPAddress.
type work struct {
	kind   string // serviceWork or addressWork
	object reconcile.Key
}

const (
	serviceWork = "service"
	addressWork = "address"
)

func (w work) String() string { return w.kind + ":" + w.object.String() }

type controller struct {
	env       *reconcile.Env
	services  reconcile.Cache[*corev1.Service]
	ranges    reconcile.Cache[*networkingv1.ServiceCIDR]
	addresses reconcile.Cache[*networkingv1.IPAddress]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Services.From(env), reconcile.ServiceCIDRs.From(env), addresses.From(env)}
	return reconcile.Run(ctx, reconcile.ConfigOf[work]{
		Name: "addressrepair", Queue: "ipaddresses", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.SourceOf[work]{
			reconcile.Changes(c.services, c.serviceChanged),
			reconcile.Changes(c.addresses, c.addressChanged),
			reconcile.Changes(c.ranges, c.rangeChanged),
		},
	})
}

func (c *controller) reconcile(ctx context.Context, key work) (time.Duration, error) {
	if key.kind == serviceWork {
		return c.reconcileService(ctx, key.object)
	}
	return c.reconcileAddress(ctx, key.object)
}

// serviceChanged is the work for a Service, and for addresses that it has no more.
func (c *controller) serviceChanged(before, after metav1.Object) []work {
	var keys []work
	if after != nil {
		keys = append(keys, work{serviceWork, reconcile.KeyOf(after)})
	}
	if before == nil {
		return keys
	}
	for _, ip := range before.(*corev1.Service).Spec.ClusterIPs {
		if _, err := netip.ParseAddr(ip); err == nil {
			keys = append(keys, work{addressWork, reconcile.Key{Name: ip}})
		}
	}
	return keys
}

// addressChanged is the work for an IPAddress, and for the Service that it names.
func (c *controller) addressChanged(before, after metav1.Object) []work {
	var keys []work
	if after != nil {
		keys = append(keys, work{addressWork, reconcile.KeyOf(after)})
	}
	for _, o := range []metav1.Object{before, after} {
		if address, ok := o.(*networkingv1.IPAddress); ok && isOfService(address) {
			parent := address.Spec.ParentRef
			keys = append(keys, work{serviceWork, reconcile.Key{Namespace: parent.Namespace, Name: parent.Name}})
		}
	}
	return keys
}

// rangeChanged is the work for all Services when a range comes or goes.
func (c *controller) rangeChanged(before, after metav1.Object) []work {
	if before != nil && after != nil {
		return nil
	}
	services, err := c.services.List("", nil)
	if err != nil {
		c.env.Logger.Error("services not listed", "err", err)
	}
	keys := make([]work, 0, len(services))
	for _, s := range services {
		keys = append(keys, work{serviceWork, reconcile.KeyOf(s)})
	}
	return keys
}

// isOfService tells whether an IPAddress names a Service.
func isOfService(address *networkingv1.IPAddress) bool {
	parent := address.Spec.ParentRef
	return parent != nil && parent.Group == "" && parent.Resource == "services"
}

// isManaged tells whether the API has made the IPAddress for a Service.
func isManaged(address *networkingv1.IPAddress) bool {
	return address.Labels[networkingv1.LabelManagedBy] == manager
}
