package simulated

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/restartallcontainers"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

// registerRetry is the pause before a refused registration is tried again.
const registerRetry = time.Second

// owners knows the uid of each of our Nodes, from the informer.
type owners struct {
	mu  sync.Mutex
	uid map[string]types.UID
}

func newOwners() *owners { return &owners{uid: map[string]types.UID{}} }

func (o *owners) get(name string) (types.UID, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid, ok := o.uid[name]
	return uid, ok
}

func (o *owners) set(name string, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uid[name] = uid
}

// nodeEvents keeps the uids of our Nodes, and looks at the pods of one that is Ready again.
func (f *fleet) nodeEvents() cache.ResourceEventHandlerFuncs {
	see := func(before, after any) {
		n, ok := after.(*corev1.Node)
		if !ok {
			return
		}
		if _, mine := f.names[n.Name]; !mine {
			return // informers of others have all
		}
		f.owner.set(n.Name, n.UID)
		if was, known := before.(*corev1.Node); isReady(n) && (!known || !isReady(was)) {
			f.catchUp(n.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { see(nil, obj) }, UpdateFunc: see}
}

// keepNodes shares the nodes among leaseWorkers goroutines; each walks its
// share once every LeaseInterval, so the renewals are spread evenly.
func (f *fleet) keepNodes(ctx context.Context) {
	var workers sync.WaitGroup
	for w := range min(leaseWorkers, f.Nodes) {
		var mine []*member
		for i := w; i < f.Nodes; i += leaseWorkers {
			mine = append(mine, f.member(i))
		}
		workers.Go(func() { f.keepShare(ctx, mine) })
	}
	workers.Wait()
}

// member is one simulated node.
type member struct {
	index int
	name  string
	lease *node.Lease
	// wasOff: it was switched off at its last beat.
	wasOff bool
}

func (f *fleet) member(i int) *member {
	m := &member{index: i, name: fmt.Sprintf("%s%d", f.NamePrefix, i+1)}
	m.lease = &node.Lease{Client: f.Client, Name: m.name, Interval: f.LeaseInterval, Owner: func() types.UID {
		uid, _ := f.owner.get(m.name)
		return uid
	}}
	return m
}

// keepShare registers its members as fast as the API answers, then renews one
// Lease after the other.
func (f *fleet) keepShare(ctx context.Context, mine []*member) {
	for _, m := range mine {
		for f.register(ctx, m) != nil {
			if !wait.For(ctx, registerRetry) {
				return
			}
		}
	}
	for step := f.LeaseInterval / time.Duration(len(mine)); ; {
		for _, m := range mine {
			if !clusterclock.Wait(ctx, f.Clock, step) {
				return
			}
			if err := f.beat(ctx, m); err != nil && ctx.Err() == nil {
				f.Logger.Warn("simulated lease", "node", m.name, "err", err)
			}
		}
	}
}

// beat renews the Lease, and says Ready again if a controller lost sight of
// the node meanwhile; a Node deleted by hand is registered anew. Extended resources in its capacity become allocatable.
func (f *fleet) beat(ctx context.Context, m *member) error {
	if f.Outage.Off(m.name) {
		m.wasOff = true
		return nil
	}
	if m.wasOff {
		m.wasOff = false
		defer f.catchUp(m.name)
	}
	got, err := f.nodes.Get(m.name)
	if err != nil {
		return f.register(ctx, m)
	}
	if err := m.lease.Renew(ctx, f.Clock.Now()); err != nil {
		return err
	}
	if !isReady(got) {
		return f.makeReady(ctx, got, f.node(m, f.Clock.Now()))
	}
	return f.passOn(ctx, got)
}

// register creates the Node, or adopts it, with a first Lease.
func (f *fleet) register(ctx context.Context, m *member) error {
	want := f.node(m, f.Clock.Now())
	nodes := f.Client.CoreV1().Nodes()
	got, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		got, err = nodes.Get(ctx, m.name, metav1.GetOptions{})
	}
	if err == nil {
		f.owner.set(m.name, got.UID)
		err = f.makeReady(ctx, got, want)
	}
	if err == nil {
		err = m.lease.Renew(ctx, f.Clock.Now())
	}
	if err != nil && ctx.Err() == nil {
		f.Logger.Warn("simulated node", "node", m.name, "err", err)
	}
	return err
}

// makeReady writes the status unless the Node already says Ready: an API
// server may drop the status of a created object, and a node of an earlier Run
// may have been marked unknown meanwhile.
func (f *fleet) makeReady(ctx context.Context, got, want *corev1.Node) error {
	if isReady(got) {
		return nil
	}
	next := got.DeepCopy()
	next.Status = want.Status
	_, err := f.Client.CoreV1().Nodes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (f *fleet) node(m *member, now time.Time) *corev1.Node {
	version := f.Version
	if version == "" {
		version = node.DefaultVersion
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{
			Label:                labelValue(f.NamePrefix),
			corev1.LabelHostname: m.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
			"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": runtime.GOARCH,
		}},
		Status: corev1.NodeStatus{
			Capacity: f.Capacity, Allocatable: f.Capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP(m.index)},
				{Type: corev1.NodeHostName, Address: m.name},
			},
			Conditions: nodeConditions(metav1.NewTime(now)),
			DeclaredFeatures: []string{ // sorted
				inplacepodresize.IPPRPodLevelResourcesFeatureGate, inplacepodresize.IPPRInitContainersFeatureGate,
				// Its containers never end by themselves, so no rule ever applies.
				restartallcontainers.RestartAllContainersOnContainerExits,
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version, OperatingSystem: "linux", Architecture: runtime.GOARCH,
				OSImage: "simulated", KernelVersion: "simulated", ContainerRuntimeVersion: "simulated://1"},
		},
	}
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	cond := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, text string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: text, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		cond(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		cond(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		cond(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		cond(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "simulated node"),
	}
}

func defaultCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

// labelValue makes the prefix a legal label value.
func labelValue(prefix string) string { return strings.Trim(prefix, "-._") }
