package clusterobjects

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// interval is how often the objects are looked at. They are few, and nothing follows them.
const interval = time.Minute

// Objects are those that there have to be. They are shared: nobody changes them.
type Objects struct {
	PriorityClasses []*schedulingv1.PriorityClass
	Levels          []*flowcontrolv1.PriorityLevelConfiguration
	Schemas         []*flowcontrolv1.FlowSchema
	// ServiceCIDR is the range of all Services' addresses; it is fixed.
	ServiceCIDR netip.Prefix
	// Authentication is what servers behind this one read: whom to believe.
	Authentication map[string]string
}

// Config is what the controller needs for one term.
type Config struct {
	Client  kubernetes.Interface
	Objects *Objects
	Logger  *slog.Logger
}

type controller struct{ cfg Config }

// everything is the only key: each pass looks at all objects.
var everything = reconcile.Key{Name: "cluster objects"}

// Run keeps the objects until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "clusterobjects",
		Reconcile: c.reconcile,
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Logger:    cfg.Logger,
	})
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	return interval, ensure(ctx, c.cfg.Client, c.cfg.Objects)
}

// ensure writes nothing if everything is as it should be. What fails keeps nothing
// else from being there.
func ensure(ctx context.Context, client kubernetes.Interface, o *Objects) error {
	return errors.Join(
		ensurePriorityClasses(ctx, client, o.PriorityClasses),
		ensureLevels(ctx, client, o.Levels),
		ensureSchemas(ctx, client, o.Schemas),
		ensureServiceCIDR(ctx, client, o.ServiceCIDR),
		ensureAuthentication(ctx, client, o.Authentication),
	)
}
