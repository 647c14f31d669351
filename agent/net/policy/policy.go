package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

const (
	// settleTime collects changes that come together.
	settleTime = 20 * time.Millisecond
	// retryInterval is the pause after the network refused.
	retryInterval = 5 * time.Second
	// pruneInterval is how often pods that are gone are looked for, and how long a new one may not be on the network yet.
	pruneInterval = 30 * time.Second
	// listTimeout bounds the question which policies a new pod's namespace has, and knownTimeout the wait until they, and
	// the pods and namespaces that they speak of, are known here.
	listTimeout   = 2 * time.Second
	knownTimeout  = 10 * time.Second
	knownInterval = 5 * time.Millisecond
)

var errUnknown = errors.New("network policies are not known yet")

// Network is where rules are enforced.
type Network interface {
	// Apply replaces what was enforced before.
	Apply(*plan.Table) error
	// Clear removes what another agent has left.
	Clear() error
	// Intact reports whether what Apply made is still there.
	Intact() (bool, error)
	// Connected are the pods that run on the network: one that has ended has no address, even if nobody has cleared it away.
	Connected(context.Context) ([]Sandbox, error)
}

// Config of Watch; all fields are required.
type Config struct {
	Client  kubernetes.Interface
	Network Network
	Logger  *slog.Logger
}

// Watch is what enforces policies. mu guards here, and is held while the network is told: whoever admits a pod waits for that.
type Watch struct {
	Config
	policies informers.SharedInformerFactory
	// others has pods and namespaces; it starts with the first policy.
	others  informers.SharedInformerFactory
	started atomic.Bool
	ready   atomic.Bool   // the pods of a former agent are known
	applied atomic.Bool   // the network has once had the rules of policies
	changed chan struct{} // holds one: more would say the same

	mu   sync.Mutex
	here here
}

// New returns what Run and Admit work with.
func New(c Config) *Watch {
	// A list from what some replica happens to have may be of yesterday; without a version to start from, reads are linearizable.
	newest := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		if o.ResourceVersion == "0" {
			o.ResourceVersion, o.ResourceVersionMatch = "", ""
		}
	})
	w := &Watch{
		Config: c, changed: make(chan struct{}, 1), here: here{},
		policies: informers.NewSharedInformerFactoryWithOptions(c.Client, 0, newest),
		others:   informers.NewSharedInformerFactoryWithOptions(c.Client, 0, newest),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.look() }, UpdateFunc: func(any, any) { w.look() }, DeleteFunc: func(any) { w.look() },
	}
	pods, namespaces := w.others.Core().V1().Pods().Informer(), w.others.Core().V1().Namespaces().Informer()
	// Before the start these cannot fail.
	_ = errors.Join(pods.SetTransform(slimPod), namespaces.SetTransform(slimNamespace))
	for _, informer := range []cache.SharedIndexInformer{w.policies.Networking().V1().NetworkPolicies().Informer(), pods, namespaces} {
		_, _ = informer.AddEventHandler(handler)
	}
	return w
}

func (w *Watch) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run follows the API until ctx ends. The rules stay.
func (w *Watch) Run(ctx context.Context) {
	w.policies.StartWithContext(ctx)
	defer w.policies.Shutdown()
	defer w.others.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), w.policies.Networking().V1().NetworkPolicies().Informer().HasSynced) {
		return
	}
	if !w.findConnected(ctx) {
		return
	}
	prune := time.NewTicker(pruneInterval)
	defer prune.Stop()
	w.look() // a cluster without policies is known too
	for delay := settleTime; ; {
		select {
		case <-ctx.Done():
			return
		case <-prune.C:
			w.prune(ctx)
			continue
		case <-w.changed:
		}
		if !wait.For(ctx, delay) {
			return
		}
		delay = settleTime
		if err := w.enforce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Warn("network policies are not enforced as they are now", "err", err)
			delay = retryInterval
			w.look()
		}
	}
}

// findConnected learns which pods a former agent has connected. Nothing is enforced before: their rules would be taken away.
func (w *Watch) findConnected(ctx context.Context) bool {
	for {
		connected, err := w.Network.Connected(ctx)
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, s := range connected {
				if w.here[s.first()] == nil { // one that was admitted since is newer
					w.here.add(s, time.Now())
				}
			}
			w.ready.Store(true)
			return true
		}
		w.Logger.Warn("network policies wait for the container runtime", "err", err)
		if !wait.For(ctx, retryInterval) {
			return false
		}
	}
}

// Thing is what the node has to hold: the rules of policies. Before the first policy there are none, and until they are in force for the
// first time nobody else has taken them away: Run tries that again.
func (w *Watch) Thing() upkeep.Thing {
	return upkeep.Thing{Name: "the rules of network policies", Guards: true, PutBack: w.enforce, Whole: func() (bool, error) {
		if !w.applied.Load() {
			return true, nil
		}
		return w.Network.Intact()
	}}
}

// prune forgets pods that are gone.
func (w *Watch) prune(ctx context.Context) {
	if connected, err := w.Network.Connected(ctx); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.here.prune(connected, time.Now())
	}
}

// enforce plans with all that is known, and tells the network. Without a policy it follows nobody.
func (w *Watch) enforce(ctx context.Context) error {
	if cleared, err := w.clear(); cleared || err != nil {
		return err
	}
	w.others.StartWithContext(ctx)
	w.started.Store(true)
	if !w.synced() {
		ctx, cancel := context.WithTimeout(ctx, knownTimeout)
		defer cancel()
		pods, namespaces := w.others.Core().V1().Pods().Informer(), w.others.Core().V1().Namespaces().Informer()
		if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, namespaces.HasSynced) {
			return errUnknown
		}
	}
	return w.tell()
}

// clear removes what another agent has left, if there is and was no policy. To look and to remove is one step: a pod that is admitted
// meanwhile keeps its rules.
func (w *Watch) clear() (cleared bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	policies, err := w.policies.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	if err != nil || len(policies) > 0 || w.started.Load() {
		return false, err
	}
	return true, w.Network.Clear()
}

func (w *Watch) synced() bool {
	return w.policies.Networking().V1().NetworkPolicies().Informer().HasSynced() &&
		w.others.Core().V1().Pods().Informer().HasSynced() && w.others.Core().V1().Namespaces().Informer().HasSynced()
}

func (w *Watch) tell() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	world, err := w.world()
	if err != nil {
		return err
	}
	if err = w.Network.Apply(plan.Of(world)); err == nil {
		w.applied.Store(true)
	}
	return err
}

// world is what the caches have. mu is held.
func (w *Watch) world() (plan.World, error) {
	policies, err := w.policies.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	pods, podsErr := w.others.Core().V1().Pods().Lister().List(labels.Everything())
	namespaces, namespacesErr := w.others.Core().V1().Namespaces().Lister().List(labels.Everything())
	world := plan.World{Policies: policies, Pods: w.here.pods(pods), Namespaces: map[string]labels.Set{}}
	for _, n := range namespaces {
		world.Namespaces[n.Name] = n.Labels
	}
	return world, errors.Join(err, podsErr, namespacesErr)
}

// Admit returns once a pod that is about to be connected has its rules. Until then it must not send.
func (w *Watch) Admit(ctx context.Context, s Sandbox) error {
	w.mu.Lock()
	w.here.add(s, time.Now())
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	if err := w.await(ctx, w.newest(ctx, s.Namespace)); err != nil {
		return err
	}
	policies, err := w.policies.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	if err != nil || len(policies) == 0 {
		return err
	}
	return w.tell()
}

// newest are the policies that a namespace has now: a pod that was made after a policy must not be here before it. While
// the API is away there are no newer ones.
func (w *Watch) newest(ctx context.Context, namespace string) []networkingv1.NetworkPolicy {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := w.Client.NetworkingV1().NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// await returns when the caches have read everything, and these policies.
func (w *Watch) await(ctx context.Context, policies []networkingv1.NetworkPolicy) error {
	for !w.knows(policies) {
		if !wait.For(ctx, knownInterval) {
			return fmt.Errorf("%w: the pod is not connected", errUnknown)
		}
	}
	return nil
}

// knows reports whether the caches have read everything, and these policies as they are or as they became.
func (w *Watch) knows(policies []networkingv1.NetworkPolicy) bool {
	informer := w.policies.Networking().V1().NetworkPolicies().Informer()
	if !informer.HasSynced() || !w.ready.Load() {
		return false
	}
	if len(policies) == 0 && len(informer.GetStore().ListKeys()) == 0 {
		return true // nobody has to be followed
	}
	lister := w.policies.Networking().V1().NetworkPolicies().Lister()
	for i := range policies {
		have, err := lister.NetworkPolicies(policies[i].Namespace).Get(policies[i].Name)
		if err != nil || older(have, &policies[i]) {
			return false
		}
	}
	return w.started.Load() && w.synced()
}

// older compares revisions, which grow with each change in the cluster.
func older(have, listed *networkingv1.NetworkPolicy) bool {
	a, err := strconv.ParseUint(have.ResourceVersion, 10, 64)
	b, listedErr := strconv.ParseUint(listed.ResourceVersion, 10, 64)
	return err == nil && listedErr == nil && a < b
}
