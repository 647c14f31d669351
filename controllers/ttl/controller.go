package ttl

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// New annotates nodes.
func New() reconcile.Controller {
	return reconcile.Controller{Name: "ttl-controller", Reads: []reconcile.Read{reconcile.Nodes}, Run: run}
}

type controller struct {
	env   *reconcile.Env
	nodes reconcile.Cache[*corev1.Node]
	size  size
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env: env, nodes: reconcile.Nodes.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "ttl", Queue: "ttlcontroller", Reconcile: c.reconcile, Sources: []reconcile.Source{reconcile.Changes(c.nodes, c.nodeChanged)}, Env: env,
	})
}

// nodeChanged counts, and maps a node to itself or, when the seconds change, to all nodes.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	changed := false
	switch {
	case before == nil:
		changed = c.size.add(1)
	case after == nil:
		changed = c.size.add(-1)
	}
	var keys []reconcile.Key
	if changed {
		keys = c.all()
	}
	if after != nil {
		keys = append(keys, reconcile.KeyOf(after))
	}
	return keys
}

func (c *controller) all() []reconcile.Key {
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		c.env.Logger.Error("nodes not listed", "err", err)
	}
	keys := make([]reconcile.Key, 0, len(nodes))
	for _, node := range nodes {
		keys = append(keys, reconcile.KeyOf(node))
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node, err := c.nodes.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	want := c.size.ttlSeconds()
	if has, err := strconv.Atoi(node.Annotations[corev1.ObjectTTLAnnotationKey]); err == nil && has == want {
		return 0, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, corev1.ObjectTTLAnnotationKey, want)
	_, err = c.env.Client.CoreV1().Nodes().Patch(
		reconcile.WithCause(ctx, node), node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
	)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("annotate Node %s: %w", key.Name, err)
	}
	return 0, nil
}
