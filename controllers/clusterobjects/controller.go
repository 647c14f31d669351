package clusterobjects

import (
	"context"
	"errors"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// interval is how often the objects are looked at. They are few, and nothing follows them but Objects.Changed.
const interval = time.Minute

// Objects are those that must exist. They are shared and must not be changed.
type Objects struct {
	PriorityClasses []*schedulingv1.PriorityClass
	Levels          []*flowcontrolv1.PriorityLevelConfiguration
	Schemas         []*flowcontrolv1.FlowSchema
	// ServiceCIDRs are the ranges of all Services' addresses: of IPv4, and maybe of IPv6.
	ServiceCIDRs []string
	// Authentication is what the ConfigMap says now that tells aggregated API servers which CAs to trust. With an error it is not all.
	Authentication func() (map[string]string, error)
	// Changed has something to receive when Authentication says something else than before; nil: it never does.
	Changed <-chan struct{}
	// Definitions makes the CustomResourceDefinitions that the cluster brings along; nil: there are none.
	Definitions func() ([]*apiextensionsv1.CustomResourceDefinition, error)
}

// New keeps the objects; nil leaves them to others.
func New(objects *Objects) reconcile.Controller {
	return reconcile.Controller{
		Name: "cluster-objects-controller", OfAPI: true, Reads: []reconcile.Read{reconcile.CustomResourceDefinitions},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			if objects == nil {
				return reconcile.Idle(ctx)
			}
			return run(ctx, env, objects)
		},
	}
}

func run(ctx context.Context, env *reconcile.Env, objects *Objects) error {
	bundled := &definitions{all: objects.Definitions, stored: reconcile.CustomResourceDefinitions.From(env), client: env.Extensions}
	ranges := &inconsistency{env: env, flags: objects.ServiceCIDRs}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "clusterobjects",
		Reconcile: func(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
			return interval, errors.Join(ensure(ctx, env.Client, objects, env.Now()), bundled.ensure(ctx), ranges.tell(ctx))
		},
		Sources: []reconcile.Source{reconcile.Filled(bundled.stored)},
		Feeds:   []reconcile.Feed{reconcile.Once(everything), objects.follow},
		Workers: 1,
		Env:     env,
	})
}

// everything is the only key: each pass looks at all objects.
var everything = reconcile.Key{Name: "cluster objects"}

// follow looks at the objects at once when Changed says so.
func (o *Objects) follow(ctx context.Context, add func(reconcile.Key)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.Changed:
			add(everything)
		}
	}
}

// ensure writes nothing if everything is as it should be. What fails keeps nothing
// else from being there.
func ensure(ctx context.Context, client kubernetes.Interface, o *Objects, now time.Time) error {
	return errors.Join(
		ensurePriorityClasses(ctx, client, o.PriorityClasses),
		ensureLevels(ctx, client, o.Levels),
		ensureSchemas(ctx, client, o.Schemas),
		EnsureServiceCIDR(ctx, client, o.ServiceCIDRs),
		ensureAuthentication(ctx, client, o.Authentication),
		ensureTokenTracking(ctx, client, now),
	)
}
