package servicecidr

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingapply "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	controllerName = "service-cidr-controller"
	// page is how many addresses are listed at once.
	page = 500
)

var ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")

// New keeps the ranges. monitors are informers of all kinds; of that of IPAddresses the names count.
func New(monitors func() map[schema.GroupVersionResource]cache.SharedIndexInformer) reconcile.Controller {
	return reconcile.Controller{
		Name:    controllerName,
		Account: "service-cidrs-controller",
		Reads:   []reconcile.Read{reconcile.ServiceCIDRs},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			return run(ctx, &controller{env, reconcile.ServiceCIDRs.From(env), monitors()[ipAddresses]})
		},
	}
}

func run(ctx context.Context, c *controller) error {
	if c.addresses == nil {
		return reconcile.Idle(ctx) // who cannot see what is in use lets nothing go
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "servicecidr", Queue: "servicecidrs", Reconcile: c.reconcile, Env: c.env,
		Sources: []reconcile.Source{reconcile.Changes(c.ranges, c.rangeChanged), {Informer: c.addresses, Map: c.addressChanged}},
	})
}

type controller struct {
	env       *reconcile.Env
	ranges    reconcile.Cache[*serviceCIDR]
	addresses cache.SharedIndexInformer
}

// rangeChanged maps a range to itself and, if it came, to those that overlap with it: they may go now.
func (c *controller) rangeChanged(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		return []reconcile.Key{reconcile.KeyOf(before)}
	}
	keys := []reconcile.Key{reconcile.KeyOf(after)}
	if before != nil {
		return keys
	}
	return append(keys, c.going(func(cidr *serviceCIDR) bool { return overlap(cidr, after.(*serviceCIDR)) })...)
}

// addressChanged maps an address that came or went to the ranges that wait for it.
func (c *controller) addressChanged(before, after metav1.Object) []reconcile.Key {
	changed := after
	if changed == nil {
		changed = before
	}
	ip, err := netip.ParseAddr(changed.GetName())
	if err != nil || before != nil && after != nil {
		return nil
	}
	return c.going(func(cidr *serviceCIDR) bool { return holds(cidr, ip) })
}

// going are the ranges that are being deleted and concerned.
func (c *controller) going(concerned func(cidr *serviceCIDR) bool) []reconcile.Key {
	all, err := c.ranges.List("", nil)
	if err != nil {
		return nil // the loop's source says so
	}
	var keys []reconcile.Key
	for _, cidr := range all {
		if cidr.DeletionTimestamp != nil && concerned(cidr) {
			keys = append(keys, reconcile.KeyOf(cidr))
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	cidr, err := c.ranges.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	all, err := c.ranges.List("", nil)
	if err != nil {
		return 0, err
	}
	var used []netip.Addr
	if cidr.DeletionTimestamp != nil {
		if used, err = c.used(ctx); err != nil {
			return 0, err
		}
	}
	p := planOf(cidr, all, used, c.env.Now())
	return p.again, c.act(reconcile.WithCause(ctx, cidr), cidr, p)
}

// used are the addresses of Services, as of now: the monitor does not know whose an address is.
func (c *controller) used(ctx context.Context) ([]netip.Addr, error) {
	var used []netip.Addr
	options := metav1.ListOptions{LabelSelector: networkingv1.LabelManagedBy + "=" + manager, Limit: page}
	for {
		list, err := c.env.Metadata.Resource(ipAddresses).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list addresses: %w", err)
		}
		for i := range list.Items {
			if ip, ours := addressOf(&list.Items[i]); ours {
				used = append(used, ip)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return used, nil
		}
	}
}

func (c *controller) act(ctx context.Context, cidr *serviceCIDR, p plan) error {
	if p.add || p.remove {
		field := map[bool]string{true: "finalizers", false: "$deleteFromPrimitiveList/finalizers"}[p.add]
		if err := c.patch(ctx, cidr.Name, map[string]any{"metadata": map[string]any{"uid": cidr.UID, field: []string{finalizer}}}); err != nil {
			return fmt.Errorf("finalizer: %w", err)
		}
	}
	if p.condition == nil {
		return nil
	}
	return c.show(ctx, cidr, p.condition)
}

func (c *controller) patch(ctx context.Context, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.env.Client.NetworkingV1().ServiceCIDRs().Patch(ctx, name, types.StrategicMergePatchType, text, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *controller) show(ctx context.Context, cidr *serviceCIDR, condition *metav1.Condition) error {
	status := networkingapply.ServiceCIDRStatus().WithConditions(metaapply.Condition().
		WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).WithMessage(condition.Message).
		WithLastTransitionTime(condition.LastTransitionTime))
	_, err := c.env.Client.NetworkingV1().ServiceCIDRs().ApplyStatus(
		ctx,
		networkingapply.ServiceCIDR(cidr.Name).WithStatus(status),
		metav1.ApplyOptions{FieldManager: controllerName, Force: true},
	)
	if err != nil && !apierrors.IsNotFound(err) && condition.Status == metav1.ConditionTrue {
		c.env.Events.Event(cidr, corev1.EventTypeWarning, "KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True")
	}
	if err != nil {
		return fmt.Errorf("condition: %w", err)
	}
	return nil
}
