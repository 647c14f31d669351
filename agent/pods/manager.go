package pods

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/images"
	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/noswap"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
	"github.com/setpoint-io/setpoint/agent/volumes"
)

// Config of a Manager. All fields but MaxPods, MemoryBytes and Logger are required.
type Config struct {
	NodeName string
	Client   kubernetes.Interface
	Runtime  cri.Runtime
	// RuntimeName prefixes container ids in statuses.
	RuntimeName string
	// HostIPs are the node's addresses, the primary one first.
	HostIPs func() []string
	Dirs    podconfig.Dirs
	// LogLinks get a link to the log of each container; the zero Links get none.
	LogLinks logs.Links
	// DNS is how pods ask for names; nil: they do not.
	DNS     func() resolvconf.Node
	Objects podconfig.Objects
	Events  events.Recorder
	Status  *status.Manager
	Images  *images.Puller
	Volumes *volumes.Manager
	// Contents tells when a ConfigMap or Secret of a pod's volumes changes; nil leaves that to a look now and then.
	Contents Contents
	// Allocatable is what the node can give; pods beyond it are rejected.
	Allocatable func() corev1.ResourceList
	// Features are those that the node declares; nil: pods are not judged by them.
	Features []string
	// Pressure is that of the node, which keeps pods away. Nil: none.
	Pressure func() []corev1.NodeConditionType
	// ShuttingDown: the machine is, so no pod may start. Nil: never.
	ShuttingDown func() bool
	// UnsafeSysctls may be set beside the safe ones.
	UnsafeSysctls []string
	// SeccompDefault gives containers that name no profile the runtime's.
	SeccompDefault bool
	// QuotaPeriod is within which quotas of CPU time are used up; 0 is upstream's.
	QuotaPeriod time.Duration
	// Users are those that pods with user namespaces have. Nil: none has one.
	Users *userns.Ranges
	// Devices are those of device plugins. Nil: there are none.
	Devices Devices
	// Pinning gives containers CPUs and memory of their own. Nil: they have none.
	Pinning Pinning
	// Swap is how the machine counts it: containers get none.
	Swap noswap.Accounting
	// Claims are those of DRA drivers. Nil: pods that have any cannot start.
	Claims Claims
	// RestartPauseMax is the longest pause of a container that keeps ending; 0 is upstream's.
	RestartPauseMax time.Duration
	// RuntimeHandler is the handler of a RuntimeClass.
	RuntimeHandler func(ctx context.Context, class string) (string, error)
	// UserAgent of HTTP probes and hooks.
	UserAgent string
	// Listener hears of the pods and their statuses. Nil: nobody does.
	Listener status.Listener
	Logger   *slog.Logger
}

// Contents follows the objects that pods' volumes are made from.
type Contents interface {
	// Follow calls changed when one of them may have changed; again does nothing.
	Follow(pod *corev1.Pod, changed func())
	Forget(pod types.UID)
}

// Manager runs pods. Use New, then Run once.
type Manager struct {
	Config
	children sync.WaitGroup
	refusals refusals
	// probeCounts are the results of all probes.
	probeCounts probes.Counts
	// following: the loop of events runs, which takes each turn.
	following atomic.Bool
	turn      chan struct{}

	mu      sync.Mutex
	workers map[types.UID]*worker
	// allocations are those of pods that were not rejected.
	allocations map[types.UID]*allocation
	// resizesWait: a pod's resize is deferred.
	resizesWait bool
	mirrors     mirrors
}

// node is what the shares of pods depend on.
func (m *Manager) node() podconfig.Node {
	return podconfig.Node{Allocatable: m.Allocatable(), QuotaPeriod: m.QuotaPeriod}
}

// New returns a Manager that does nothing before Run.
func New(cfg Config) *Manager {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DNS == nil {
		cfg.DNS = func() resolvconf.Node { return resolvconf.Node{} }
	}
	if cfg.Listener == nil {
		cfg.Listener = status.Nobody{}
	}
	return &Manager{Config: cfg, workers: map[types.UID]*worker{}, turn: make(chan struct{}), allocations: map[types.UID]*allocation{},
		mirrors: mirrors{all: map[types.UID]*corev1.Pod{}}}
}

// Run follows the informer's pods until ctx ends; containers go on running. The
// informer must be restricted to this node and be started by the caller.
func (m *Manager) Run(ctx context.Context, informer cache.SharedIndexInformer) error {
	registration, err := informer.AddEventHandler(m.handler(ctx))
	if err != nil && ctx.Err() == nil {
		return err
	}
	defer m.children.Wait()
	if err != nil {
		return nil //nolint:nilerr // an informer that has ended with ctx takes no handler
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	m.mu.Lock()
	m.mirrors.known = true
	m.mu.Unlock()
	for !m.adoptOrphans(ctx) {
		if !wait.For(ctx, lookRetry) {
			return nil
		}
	}
	m.reclaim(ctx)
	m.removeLeftovers(ctx)
	m.children.Go(func() { m.followEvents(ctx) })
	m.children.Go(func() { m.relist(ctx) })
	<-ctx.Done()
	return nil
}

func (m *Manager) handler(ctx context.Context) cache.ResourceEventHandlerFuncs {
	see := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == m.NodeName {
			m.see(ctx, pod, false)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				m.see(ctx, pod, true)
			}
		},
	}
}

// see takes in a pod of the API.
func (m *Manager) see(ctx context.Context, pod *corev1.Pod, gone bool) {
	if _, ok := isMirror(pod); ok {
		m.mirrored(pod, gone)
		return
	}
	m.deliver(ctx, podconfig.FromAPI(pod), gone)
}

// deliver hands the newest object to the pod's worker, starting one if needed.
// A pod that is gone and has no worker needs none.
func (m *Manager) deliver(ctx context.Context, pod *corev1.Pod, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w := m.workers[pod.UID]
	if w == nil && gone {
		return
	}
	if w != nil && !gone {
		m.judgeUpdate(w, pod)
	}
	if w == nil {
		w = newWorker(m, pod)
		if why := m.admit(pod); w.reject(why) {
			m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, why.Reason, why.Message)
		} else {
			m.allocations[pod.UID] = restored(pod)
		}
		m.start(ctx, w)
	}
	w.set(pod, gone)
	m.Listener.PodChanged(pod.UID, nil)
}

// start runs w until its pod is gone. m.mu is held.
func (m *Manager) start(ctx context.Context, w *worker) {
	m.workers[w.uid] = w
	m.children.Go(func() {
		w.run(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.workers, w.uid)
		m.release(w.uid)
		m.Listener.PodGone(w.uid)
	})
}

// adoptOrphans gives a worker to every pod in the runtime that the complete
// list did not have: its API object is gone, so it must go. It reports whether
// the runtime could be asked.
func (m *Manager) adoptOrphans(ctx context.Context) bool {
	keys, err := observed.Keys(ctx, m.Runtime)
	if err != nil {
		m.Logger.Warn("cannot look for orphaned pods", "err", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, key := range keys {
		if m.workers[uid] != nil || ctx.Err() != nil {
			continue
		}
		m.Logger.Info("removing a pod the API does not know", "pod", key.Namespace+"/"+key.Name, "uid", string(uid))
		pod := orphan(key, m.NodeName)
		w := newWorker(m, pod)
		m.start(ctx, w)
		w.set(pod, true)
	}
	return true
}

// ProbeCounts are the results of the probes so far.
func (m *Manager) ProbeCounts() map[probes.Count]uint64 { return m.probeCounts.All() }

// Pods lists the pods that have a worker.
func (m *Manager) Pods() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*corev1.Pod
	for _, w := range m.workers {
		if pod, gone := w.latest(); !gone {
			out = append(out, pod)
		}
	}
	return out
}

// Pod finds a pod by name; of several incarnations the newest.
func (m *Manager) Pod(namespace, name string) (*corev1.Pod, bool) {
	var found *corev1.Pod
	for _, pod := range m.Pods() {
		if pod.Namespace == namespace && pod.Name == name && (found == nil || found.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			found = pod
		}
	}
	return found, found != nil
}

// Look has a pod looked at: something that its status shows has changed.
func (m *Manager) Look(uid types.UID) {
	if w := m.worker(uid); w != nil {
		w.poke()
	}
}

// VolumesChanged has the volumes of a pod mounted or brought up to date at once.
func (m *Manager) VolumesChanged(uid types.UID) {
	if w := m.worker(uid); w != nil {
		w.contentChanged()
	}
}

// confirm deletes the API object of a pod of which nothing is left.
func (m *Manager) confirm(ctx context.Context, pod *corev1.Pod) error {
	var now int64
	opts := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	return ignoreGone(m.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, opts))
}
