package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/internal/process"
)

const (
	// DefaultVersion is the kubelet version a node reports when Config has none.
	DefaultVersion = "v1.37.2+setpoint." + process.Version
	// DefaultMaxPods is upstream's default number of pods for each node.
	DefaultMaxPods = 110
	// DefaultLeaseInterval suits a node without a session: four renewals fit in
	// the 40 s after which a silent node counts as lost.
	DefaultLeaseInterval = 10 * time.Second

	defaultStatusInterval = 5 * time.Minute
	defaultCheckInterval  = 10 * time.Second
	registerRetryMin      = 200 * time.Millisecond
	registerRetryMax      = 5 * time.Second
	// answerPause is the least time between two corrections of what others wrote:
	// with someone who insists it must not become a quarrel.
	answerPause = time.Second
	// defaultImagesMax is upstream's.
	defaultImagesMax = 50
)

// ErrIncomplete is returned by Run for a Config that lacks a required field.
var ErrIncomplete = errors.New("node: Config needs Name, Client and Addresses")

// Config says who the node is. Name, Client and Addresses are required.
type Config struct {
	Name      string
	Client    kubernetes.Interface
	Addresses func() []corev1.NodeAddress
	// Labels are added to the well-known ones.
	Labels map[string]string
	// Version is nodeInfo.kubeletVersion; DefaultVersion when empty.
	Version string
	// RuntimeVersion is nodeInfo.containerRuntimeVersion, such as "setpoint://1".
	RuntimeVersion string
	// Port is the port of the kubelet endpoints.
	Port int32
	// MaxPods is the number of pods; DefaultMaxPods when 0.
	MaxPods int64
	// Allocatable is what of the capacity pods can have. Nil: all.
	Allocatable func(capacity corev1.ResourceList) corev1.ResourceList
	// Enforced says that the runtime bounds all pods together by what is allocatable.
	Enforced bool
	// Devices are the numbers of device plugins' devices, all of them and the healthy ones. Nil: there are none.
	Devices func() (capacity, allocatable corev1.ResourceList)
	// ForgetExtended: what the Node says of resources in other domains than Kubernetes' is of an earlier machine.
	ForgetExtended bool
	// Claim are the annotations of a Node that is made here which say whose it is; one that is there keeps its own.
	Claim map[string]string
	// Annotations are what else others have to know of the node; they are kept as they are here. Nil: nothing.
	Annotations func() map[string]string
	// Conditions are more than this package's own. Nil: none.
	Conditions func() []corev1.NodeCondition
	// Taints are those that the Node is made with; one that is there keeps its own.
	Taints []corev1.Taint
	// ImagesMax bounds the images in the status; 0 is upstream's number, -1 means all.
	ImagesMax int
	// DataDir is the directory whose file system counts as ephemeral storage.
	DataDir string
	// Pressure lists under which of the three pressures the node is. Nil: none.
	Pressure func() []corev1.NodeConditionType
	// Ready reports whether pods can run and, if not, why. Nil means always.
	Ready func(context.Context) error
	// Images lists the images on the node. Nil means none.
	Images func(context.Context) []corev1.ContainerImage
	// Runtime is what the container runtime reports of itself. Nil means nothing.
	Runtime func(context.Context) RuntimeFeatures
	// VolumesInUse lists the volumes that must not be detached. Nil: there are none.
	VolumesInUse func() []corev1.UniqueVolumeName
	// Registered is called once, after the Node object exists.
	Registered func(*corev1.Node)
	// LeaseInterval is the time between renewals; the Lease promises 30 s more.
	LeaseInterval time.Duration
	// StatusInterval is the longest time between two status writes; 5 min when 0.
	StatusInterval time.Duration
	// CheckInterval is the time between two looks at the machine; 10 s when 0.
	CheckInterval time.Duration
	// Changed wakes Run to look at once, at the machine and at the Node: the node lifecycle controller may have
	// marked this node as lost. Nil is allowed.
	Changed <-chan struct{}
	// Events are told what becomes of the Node. Nil: nobody is.
	Events events.Recorder
	Logger *slog.Logger
}

// RuntimeFeatures are those of the container runtime, as a Node's status has them.
type RuntimeFeatures struct {
	Handlers []corev1.NodeRuntimeHandler
	Node     *corev1.NodeFeatures
}

func (c *Config) setDefaults() error {
	if c.Name == "" || c.Client == nil || c.Addresses == nil {
		return ErrIncomplete
	}
	c.Version = orDefault(c.Version, DefaultVersion)
	c.MaxPods = orDefault(c.MaxPods, DefaultMaxPods)
	c.LeaseInterval = orDefault(c.LeaseInterval, DefaultLeaseInterval)
	c.StatusInterval = orDefault(c.StatusInterval, defaultStatusInterval)
	c.CheckInterval = orDefault(c.CheckInterval, defaultCheckInterval)
	c.ImagesMax = orDefault(c.ImagesMax, defaultImagesMax)
	c.DataDir = orDefault(c.DataDir, "/")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// keeper is one running registration.
type keeper struct {
	Config
	machine machine
	last    *corev1.Node // as last seen from the API
	written time.Time    // of the last accepted status
	// answered is when what others wrote was last corrected.
	answered time.Time
	owner    atomic.Value // types.UID of last, read by the Lease's goroutine
}

// Run registers the node and keeps its status and Lease until ctx ends. The
// Node object stays: its pods may outlive this agent.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.setDefaults(); err != nil {
		return err
	}
	k := &keeper{Config: cfg, machine: readMachine(cfg.DataDir)}
	if err := k.register(ctx); err != nil {
		return err
	}
	var children sync.WaitGroup
	children.Go(func() { k.keepLease(ctx) })
	k.tellStart()
	if k.Registered != nil {
		k.Registered(k.last)
	}
	k.keepStatus(ctx)
	children.Wait()
	return nil
}

// register retries until the Node exists; only ctx ends it early.
func (k *keeper) register(ctx context.Context) error {
	for delay := registerRetryMin; ; delay = min(delay*2, registerRetryMax) {
		err := k.ensure(ctx)
		if err == nil {
			return nil
		}
		k.Logger.Warn("cannot register the node yet", "node", k.Name, "err", err)
		if !wait.For(ctx, delay) {
			return ctx.Err()
		}
	}
}

// ensure creates the Node or adopts the one that is there.
func (k *keeper) ensure(ctx context.Context) error {
	want := k.desired(ctx)
	got, err := k.create(ctx, want)
	if err == nil {
		k.tell(&corev1.Node{}, got)
	}
	if apierrors.IsAlreadyExists(err) {
		got, err = k.adopt(ctx, want)
	}
	if err != nil {
		return err
	}
	k.last = got
	return k.writeStatus(ctx)
}

// create makes the Node. Servers of an earlier version let no node say whose it is: of them it is asked for without the claim.
func (k *keeper) create(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	nodes := k.Client.CoreV1().Nodes()
	got, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if len(k.Claim) == 0 || !apierrors.IsForbidden(err) {
		return got, err
	}
	unclaimed := want.DeepCopy()
	for annotation := range k.Claim {
		delete(unclaimed.Annotations, annotation)
	}
	return nodes.Create(ctx, unclaimed, metav1.CreateOptions{})
}

// adopt adds our labels to an existing Node; labels of others stay.
func (k *keeper) adopt(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	nodes := k.Client.CoreV1().Nodes()
	got, err := nodes.Get(ctx, k.Name, metav1.GetOptions{})
	if err != nil || containsAll(got.Labels, want.Labels) {
		return got, err
	}
	next := got.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want.Labels)
	return nodes.Update(ctx, next, metav1.UpdateOptions{})
}

func containsAll(have, want map[string]string) bool {
	for key, v := range want {
		if got, ok := have[key]; !ok || got != v {
			return false
		}
	}
	return true
}

// formerPodCIDR is the annotation by which a Node that is made anew asks for the range that it had.
// The controller that gives ranges (controllers/nodeipam) reads it.
const formerPodCIDR = "setpoint.io/former-pod-cidr"

// desired is the Node as this machine would create it.
func (k *keeper) desired(ctx context.Context) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:      k.Name,
		corev1.LabelOSStable:      runtime.GOOS,
		corev1.LabelArchStable:    runtime.GOARCH,
		"beta.kubernetes.io/os":   runtime.GOOS,
		"beta.kubernetes.io/arch": runtime.GOARCH,
	}
	maps.Copy(labels, k.Labels)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: k.Taints},
		Status:     k.status(ctx, corev1.NodeStatus{}, time.Now()),
	}
	n.Annotations = k.annotations()
	maps.Copy(n.Annotations, k.Claim)
	if k.last != nil && k.last.Spec.PodCIDR != "" { // its pods have addresses of this range; only the servers give it
		n.Annotations[formerPodCIDR] = cmp.Or(strings.Join(k.last.Spec.PodCIDRs, ","), k.last.Spec.PodCIDR)
	}
	return n
}
