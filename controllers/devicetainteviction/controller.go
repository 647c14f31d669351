package devicetainteviction

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
)

// controllerName is upstream's, also as field manager.
const controllerName = "device-taint-eviction-controller"

var (
	claims = reconcile.KindOf[*resourcev1.ResourceClaim](resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
	pools  = reconcile.KindOf[*resourcev1.ResourceSlice](resourcev1.SchemeGroupVersion.WithResource("resourceslices"))
	rules  = reconcile.KindOf[*resourcev1.DeviceTaintRule](resourcev1.SchemeGroupVersion.WithResource("devicetaintrules"))
)

// New evicts pods from tainted devices.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  controllerName,
		Run:   run,
		Reads: []reconcile.Read{reconcile.Pods, claims.By(byPool), pools.By(byPool), rules},
	}
}

// work is the key of the loop: a pod that may have to go, or a rule whose status may have to change.
type work struct {
	kind   string // podWork or ruleWork
	object reconcile.Key
}

const (
	podWork  = "pod"
	ruleWork = "rule"
)

func (w work) String() string { return w.kind + ":" + w.object.String() }

type controller struct {
	env    *reconcile.Env
	pods   reconcile.Cache[*corev1.Pod]
	claims reconcile.Cache[*resourcev1.ResourceClaim]
	slices reconcile.Cache[*resourcev1.ResourceSlice]
	rules  reconcile.Cache[*resourcev1.DeviceTaintRule]
	told   newest.Versions[*resourcev1.DeviceTaintRule] // the rules with the status that was written last

	mu sync.Mutex
	// waiting are the pods that will be evicted.
	waiting map[types.UID]bool
	// evicted counts the pods that were evicted for each rule that exists.
	evicted map[types.UID]int
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, pods: reconcile.Pods.From(env), claims: claims.From(env), slices: pools.From(env), rules: rules.From(env),
		waiting: map[types.UID]bool{}, evicted: map[types.UID]int{},
	}
	return reconcile.Run(ctx, reconcile.ConfigOf[work]{
		Name: "devicetainteviction", Queue: controllerName, Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.SourceOf[work]{
			reconcile.Changes(c.rules, c.ruleChanged),
			reconcile.Changes(c.pods, c.podChanged),
			reconcile.Changes(c.claims, c.claimChanged),
			reconcile.Changes(c.slices, c.sliceChanged),
		},
	})
}

func (c *controller) reconcile(ctx context.Context, key work) (time.Duration, error) {
	if key.kind == podWork {
		return c.reconcilePod(ctx, key.object)
	}
	return c.reconcileRule(ctx, key.object)
}
