package nodelifecycle

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/topology"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/internal/aligned"
)

var (
	leases = reconcile.KindOf[*coordinationv1.Lease](coordinationv1.SchemeGroupVersion.WithResource("leases"))
	// byNode files pods under the node that they are placed on.
	byNode = reconcile.Index{Name: "setpoint/node", Keys: func(o metav1.Object) []string {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}
		}
		return nil
	}}
)

// New judges nodes. liveness tells of sessions and gossip; nil judges by Lease alone.
func New(liveness Liveness) reconcile.Controller {
	return reconcile.Controller{
		Name:  "node-controller",
		Reads: []reconcile.Read{reconcile.Nodes, leases, reconcile.Pods.By(byNode)},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, liveness) },
	}
}

// controller is one term of the controller.
type controller struct {
	env      *reconcile.Env
	liveness Liveness
	nodes    reconcile.Cache[*corev1.Node]
	leases   reconcile.Cache[*coordinationv1.Lease]
	pods     reconcile.Cache[*corev1.Pod]
	budget   *budget
	series   *numbers.Series

	began time.Time // when the term began, by this server's clock

	mu    sync.Mutex
	term  time.Time // when the term began, by this server's clock, or it last woke
	awake time.Time // when this process was last known to run
	beats map[string]beat
	// leaving are the pods of each node that have to go when the time that they tolerate is over; not more than there are pods.
	leaving map[string]map[types.UID]bool
}

func run(ctx context.Context, env *reconcile.Env, liveness Liveness) error {
	c := &controller{
		env: env, liveness: liveness, nodes: reconcile.Nodes.From(env), leases: leases.From(env), pods: reconcile.Pods.From(env),
		budget: newBudget(), series: env.Numbers.Series(),
		beats: map[string]beat{}, leaving: map[string]map[types.UID]bool{},
	}
	c.term = env.Now()
	c.awake, c.began = c.term, c.term
	loop := reconcile.Config{
		Name:      "nodelifecycle",
		Queue:     "node_lifecycle_controller",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(c.nodes), reconcile.Changes(c.leases, leaseChanged), reconcile.Changes(c.pods, c.podChanged),
		},
		Feeds: []reconcile.Feed{c.tick},
		Env:   env,
	}
	if liveness != nil {
		loop.Feeds = append(loop.Feeds, c.feed)
	}
	return reconcile.Run(ctx, loop)
}

// beat is the last sign of life of a node, and when it was seen to change.
type beat struct {
	node            types.UID
	renewed, status time.Time
	seen            time.Time
	witnessed       bool
}

const (
	// tickInterval is how often the controller notes that it runs.
	tickInterval = time.Second
	// pauseMin is the gap between two ticks from which on it was this process
	// that stood still, stopped or starved, and nobody else's silence counts.
	pauseMin = 5 * time.Second
)

// tick notes that this process runs.
func (c *controller) tick(ctx context.Context, _ func(reconcile.Key)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.env.Clock.After(aligned.Until(c.env.Clock.Now(), tickInterval)):
			c.since(c.env.Now())
		}
	}
}

// since is the moment from which deadlines count at the earliest. After a pause
// of this process that is now: what happened meanwhile it has not seen.
func (c *controller) since(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.awake) >= pauseMin {
		c.term = now
		for name, b := range c.beats {
			b.seen, b.witnessed = now, false
			c.beats[name] = b
		}
	}
	c.awake = latest(c.awake, now)
	return c.term
}

// feed passes on what the liveness layer reports.
func (c *controller) feed(ctx context.Context, add func(reconcile.Key)) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-c.liveness.Changes():
			if name != "" {
				add(reconcile.Key{Name: name})
				continue
			}
			nodes, err := c.nodes.List("", nil)
			if err != nil {
				continue
			}
			for _, n := range nodes {
				add(reconcile.KeyOf(n))
			}
		}
	}
}

// leaseChanged maps a node's Lease to the node.
func leaseChanged(_, after metav1.Object) []reconcile.Key {
	lease, _ := after.(*coordinationv1.Lease)
	if lease == nil || lease.Namespace != corev1.NamespaceNodeLease {
		return nil
	}
	return []reconcile.Key{{Name: lease.Name}}
}

// podChanged maps a pod to its node when it was just placed or changed on a
// node whose pods may have to go.
func (c *controller) podChanged(_, after metav1.Object) []reconcile.Key {
	pod, _ := after.(*corev1.Pod)
	if pod == nil || pod.Spec.NodeName == "" {
		return nil
	}
	node, err := c.nodes.Get(reconcile.Key{Name: pod.Spec.NodeName})
	if err != nil || len(noExecute(node.Spec.Taints, true)) == 0 && readiness(node.Status.Conditions) != corev1.ConditionUnknown {
		return nil
	}
	return []reconcile.Key{{Name: node.Name}}
}

// reconcile judges one node.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node, err := c.nodes.Get(key)
	if apierrors.IsNotFound(err) {
		c.tellRemoved(key.Name, c.forget(key.Name))
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, node)
	now := c.env.Now()
	term := c.since(now)
	v := judge(c.signal(node.Name), c.heartbeat(node, now), term, now)
	list := judged(node, v, now)
	isBad := bad(list, v)
	// A suspect counts too: when many lose their session at once, it is not them.
	c.budget.observe(node.Name, zoneOf(node), isBad || v.state == suspect, now)

	c.series.NodeEvictions.WithLabelValues(topology.GetZoneKey(node)) // shown as 0 before the first

	evict, again := c.mayEvict(node, v, isBad, now)
	node, err = c.write(ctx, node, list, taints(node, list, v, evict, now))
	if err != nil {
		return 0, err
	}
	evictAgain, err := c.tendPods(ctx, node, v, isBad, term, now)
	return soonest(v.again, again, evictAgain), err
}

func (c *controller) signal(node string) Signal {
	if c.liveness == nil {
		return Signal{}
	}
	return c.liveness.Node(node)
}

// heartbeat compares the node's Lease and status with what was seen last.
func (c *controller) heartbeat(node *corev1.Node, now time.Time) heartbeat {
	next, promised := beat{node: node.UID, seen: now}, time.Duration(0)
	if lease, err := c.leases.Get(reconcile.Key{Namespace: corev1.NamespaceNodeLease, Name: node.Name}); err == nil &&
		lease.Spec.RenewTime != nil {
		next.renewed = lease.Spec.RenewTime.Time
		if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
			promised = time.Duration(*seconds) * time.Second
		}
	}
	if ready := conditions.Nodes.Find(node.Status.Conditions, corev1.NodeReady); ready != nil {
		next.status = ready.LastHeartbeatTime.Time
	}
	if c.first(node) {
		c.tellRegistered(node)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.beats[node.Name]
	if known && was.renewed.Equal(next.renewed) && was.status.Equal(next.status) {
		next = was
		next.node = node.UID
	} else {
		next.witnessed = known
	}
	c.beats[node.Name] = next
	return heartbeat{
		at: next.seen, witnessed: next.witnessed, promised: promised,
		reported: reported(node.Status.Conditions) || !next.renewed.IsZero(),
	}
}

// first reports whether this term has not seen the Node yet, whatever had its name before.
func (c *controller) first(node *corev1.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.beats[node.Name]
	return !known || was.node != node.UID
}

// forget lets go of a node that is gone, and returns the uid that it had; "" if it was never seen.
func (c *controller) forget(node string) types.UID {
	c.budget.forget(node)
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.beats[node].node
	delete(c.beats, node)
	delete(c.leaving, node)
	return was
}

// mayEvict asks the budget for a node that is bad and past its hold-down.
func (c *controller) mayEvict(node *corev1.Node, v verdict, isBad bool, now time.Time) (ok bool, again time.Duration) {
	if !isBad || hasNoExecute(node) {
		return false, 0
	}
	if v.state == down && !v.evict {
		return false, 0
	}
	if v.state != down {
		// It reports that it cannot run pods: give it the hold-down too.
		if wait := c.budget.badSince(node.Name).Add(holdDown).Sub(now); wait > 0 {
			return false, wait
		}
	}
	wait, ok := c.budget.spend(zoneOf(node), now)
	return ok, wait
}

// zoneOf names the node's failure zone.
func zoneOf(node *corev1.Node) string {
	return node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone]
}

// soonest is the smallest positive duration, or 0.
func soonest(waits ...time.Duration) time.Duration {
	var out time.Duration
	for _, w := range waits {
		if w > 0 && (out == 0 || w < out) {
			out = w
		}
	}
	return out
}
