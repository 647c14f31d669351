package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

const (
	// Label marks the Nodes of this package; its value is the name prefix.
	Label = simulatednode.Label

	defaultPrefix = "sim-"
	// defaultLeaseInterval keeps a node without a session inside its 40 s grace.
	defaultLeaseInterval = 10 * time.Second
	// podWorkers bounds the requests about pods that are in flight.
	podWorkers = 16
	// leaseWorkers bounds the lease renewals and registrations in flight.
	leaseWorkers = 8
	// rangeWait is how long after its registration a node's pods wait for its pod CIDRs, if a controller gives any:
	// there may be fewer ranges than nodes. rangeLook is the time between looks.
	rangeWait = 2 * time.Second
	rangeLook = 20 * time.Millisecond
)

// User is who simulated nodes are in the API.
const User = "system:setpoint:simulated-nodes"

// ErrIncomplete is returned by Run for a Config that lacks a required field.
var ErrIncomplete = errors.New("simulated: Config needs Client, and Nodes > 0 or Adopted")

// Config says how many nodes to run. Client and Nodes are required.
type Config struct {
	// Client should have no client-side rate limit worth noticing (QPS < 0).
	Client kubernetes.Interface
	// Informers, if not nil, are those of all pods and nodes that somebody else starts and ends, after Run: whose objects are shared, and
	// not copied once more. Nil: Run has its own, by Client.
	Informers informers.SharedInformerFactory
	// Nodes is the number of nodes, named NamePrefix1, NamePrefix2, ...
	Nodes int
	// Adopted are the names of Nodes that are there, with Label, and are played in place of new ones: their objects stay as they are, and
	// somebody else says that they are alive.
	Adopted []string
	// Habit is how a pod behaves that is not there yet when Run begins; nil: as the package says.
	Habit func(*corev1.Pod) Habit
	// NamePrefix is "sim-" when empty.
	NamePrefix string
	// LeaseInterval is the time between renewals of one Lease; 10 s when 0.
	LeaseInterval time.Duration
	// Capacity of each node; 32 CPU, 256 GiB, 110 pods when nil.
	Capacity corev1.ResourceList
	// Version is nodeInfo.kubeletVersion.
	Version string
	// PodCIDRs says that a controller gives nodes their pod CIDRs: pods of a new node wait for them.
	PodCIDRs bool
	// Clock is the time of the nodes; nil is the real one.
	Clock clock.WithTicker
	// Outage switches nodes off; nil: none ever.
	Outage *Outage
	Logger *slog.Logger
}

func (c *Config) setDefaults() error {
	if c.Client == nil || c.Nodes <= 0 && len(c.Adopted) == 0 {
		return ErrIncomplete
	}
	if c.NamePrefix == "" {
		c.NamePrefix = defaultPrefix
	}
	if c.LeaseInterval == 0 {
		c.LeaseInterval = defaultLeaseInterval
	}
	if c.Capacity == nil {
		c.Capacity = defaultCapacity()
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// fleet is one running set of nodes.
type fleet struct {
	Config
	names map[string]int // node name -> index; read only after newFleet
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	// byNode has the pods by nodeIndex.
	byNode cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	ips    *addresses
	owner  *owners
}

// Run registers the nodes and plays their agents until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.setDefaults(); err != nil {
		return err
	}
	f := newFleet(cfg)
	defer f.queue.ShutDown()
	synced, stop, err := f.look(ctx)
	defer stop()
	if err != nil {
		return err
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return nil // ctx has ended
	}
	var children sync.WaitGroup
	defer children.Wait()
	for range podWorkers {
		children.Go(func() { f.work(ctx) })
	}
	if len(f.Adopted) == 0 {
		children.Go(func() { f.keepNodes(ctx) })
	}
	<-ctx.Done()
	f.queue.ShutDown()
	return nil
}

func newFleet(cfg Config) *fleet {
	f := &fleet{Config: cfg, names: make(map[string]int, cfg.Nodes), ips: newAddresses(), owner: newOwners()}
	for i := range cfg.Nodes {
		f.names[fmt.Sprintf("%s%d", cfg.NamePrefix, i+1)] = i
	}
	for i, name := range cfg.Adopted {
		f.names[name] = i
	}
	f.queue = workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName](),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: cfg.Clock})
	return f
}

// podEvents feeds the queue; only pods of our nodes enter it.
func (f *fleet) podEvents() cache.ResourceEventHandlerFuncs {
	add := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok && f.mine(pod) && f.needsWork(pod) {
			f.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && f.mine(pod) {
				f.ips.adopt(pod)
			}
			add(obj)
		},
		UpdateFunc: func(before, after any) {
			add(after)
			was, wasPod := before.(*corev1.Pod)
			if is, ok := after.(*corev1.Pod); ok && wasPod && f.mine(is) && givesUp(was, is) {
				f.catchUp(is.Spec.NodeName)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				f.ips.release(pod.Spec.NodeName, pod.UID)
				if f.mine(pod) {
					f.catchUp(pod.Spec.NodeName) // what it had, others may wait for
				}
			}
		},
	}
}

func (f *fleet) mine(pod *corev1.Pod) bool {
	_, ok := f.names[pod.Spec.NodeName]
	return ok
}

// work handles keys until the queue is shut down; a refused request comes back
// with the queue's back-off.
func (f *fleet) work(ctx context.Context) {
	for {
		key, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		if err := f.sync(ctx, key); err != nil && ctx.Err() == nil {
			f.Logger.Warn("simulated pod", "pod", key.String(), "err", err)
			f.queue.AddRateLimited(key)
		} else {
			f.queue.Forget(key)
		}
		f.queue.Done(key)
	}
}
