package resourceclaim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// fieldManager is upstream's for what it applies to pods.
const fieldManager = "ResourceClaimController"

var (
	claims    = reconcile.KindOf[*resourcev1.ResourceClaim](resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
	templates = reconcile.KindOf[*resourcev1.ResourceClaimTemplate](resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates"))
)

// New makes claims for pods, and releases those that pods do not need any more.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "resource_claim",
		Account: "resource-claim-controller",
		Run:     run,
		Reads:   []reconcile.Read{reconcile.Pods.By(byClaim, byTemplate), claims.By(reconcile.ByController), templates},
	}
}

// work is the key of the loop: a pod whose claims are to be made and reserved, or a claim whose users are to be checked.
type work struct {
	kind   string // podWork or claimWork
	object reconcile.Key
}

const (
	podWork   = "pod"
	claimWork = "claim"
)

func (w work) String() string { return w.kind + ":" + w.object.String() }

type controller struct {
	env       *reconcile.Env
	pods      reconcile.Cache[*corev1.Pod]
	claims    reconcile.Cache[*resourcev1.ResourceClaim]
	templates reconcile.Cache[*resourcev1.ResourceClaimTemplate]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Pods.From(env), claims.From(env), templates.From(env)}
	env.Numbers.OfDevices().Begin(c.states)
	defer env.Numbers.OfDevices().End()
	return reconcile.Run(ctx, reconcile.ConfigOf[work]{
		Name: "resourceclaim", Queue: "resource_claim", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.SourceOf[work]{
			reconcile.Changes(c.pods, c.podChanged),
			reconcile.Changes(c.claims, c.claimChanged),
			reconcile.Changes(c.templates, c.templateChanged),
		},
	})
}

func (c *controller) reconcile(ctx context.Context, key work) (time.Duration, error) {
	if key.kind == podWork {
		return 0, c.reconcilePod(ctx, key.object)
	}
	return 0, c.reconcileClaim(ctx, key.object)
}
