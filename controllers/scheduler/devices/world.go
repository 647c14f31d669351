package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
)

// expressionLimit bounds the compiled CEL expressions that are kept; the one not used for longest goes first. Upstream's.
const expressionLimit = 10

// Limits are how long a pod may take for its devices.
type Limits struct {
	// Search is how long devices are looked for on one node; 0: without limit.
	Search time.Duration
	// Binding is how long the pod waits until its devices are ready; at least a second.
	Binding time.Duration
}

// DefaultLimits are upstream's.
var DefaultLimits = Limits{Search: 10 * time.Second, Binding: 10 * time.Minute}

// features are those that upstream 1.37 switches on by default.
var features = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true,
	FractionalCapacityRange: true, DeviceBindingAndStatus: true,
}

// Allocation is what a claim of a pod gets.
type Allocation struct {
	Claim *resourcev1.ResourceClaim
	// Result are the devices; nil if the claim has some already and the pod joins their users.
	Result *resourcev1.AllocationResult
	// Mappings tell which of its requests serve which containers, if the claim is for the pod's extended resources. It is not
	// stored yet then.
	Mappings []corev1.ContainerExtendedResourceRequest
}

// Wish is what a pod wants of devices.
type Wish struct {
	Claims   []*resourcev1.ResourceClaim
	Extended *Extended // nil: none of its extended resources is satisfied by devices
	Limits   Limits
}

// Search looks for devices on a node: one result for each claim that has none, in their order, and a last one for the claim that
// Extended makes there, if it makes one. The error says why the node cannot help.
type Search func(*corev1.Node) ([]resourcev1.AllocationResult, error)

// World is what devices are allocated from: the caches, and what has been promised to pods that are being bound.
type World struct {
	claims  resourcelisters.ResourceClaimLister
	classes classes
	slices  resourcelisters.ResourceSliceLister
	rules   resourcelisters.DeviceTaintRuleLister

	compiled *cel.Cache
	promises promises
	version  uint64
}

// New returns a World over the informers, which their owner starts.
func New(f informers.SharedInformerFactory) *World {
	resource := f.Resource().V1()
	return &World{
		claims: resource.ResourceClaims().Lister(), classes: classes{resource.DeviceClasses().Lister()},
		slices: resource.ResourceSlices().Lister(), rules: resource.DeviceTaintRules().Lister(),
		compiled: cel.NewCache(expressionLimit, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}),
		promises: promises{},
	}
}

// Search says which devices the pod would get on a node. It is nil if all its claims have devices. The error, in upstream's
// words, says why no node can help.
func (w *World) Search(pod *corev1.Pod, wish Wish) (Search, error) {
	w.promises.prune(w.claims, time.Now())
	var missing []*resourcev1.ResourceClaim
	for _, claim := range wish.Claims {
		if err := w.check(pod, claim); err != nil {
			return nil, err
		}
		if claim.Status.Allocation == nil {
			missing = append(missing, claim)
		}
	}
	if len(missing) == 0 && wish.Extended == nil {
		return nil, nil
	}
	all, err := w.claims.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	slices, err := w.taintedSlices()
	if err != nil {
		return nil, err
	}
	allocator, err := structured.NewAllocator(context.Background(), features, w.promises.allocated(all), w.classes, slices, w.compiled)
	if err != nil {
		return nil, err
	}
	s := &search{Allocator: allocator, claims: missing, extended: wish.Extended, timeout: wish.Limits.Search}
	return s.on, nil
}

// check looks at what no node can change.
func (w *World) check(pod *corev1.Pod, claim *resourcev1.ResourceClaim) error {
	switch {
	case claim.Status.Allocation != nil && !resourceclaim.CanBeReserved(claim) && !resourceclaim.IsReservedForPod(pod, claim, false):
		return errInUse
	case claim.Status.Allocation == nil && w.promises[claim.UID] != nil:
		return fmt.Errorf("resource claim %s/%s is in the process of being allocated", claim.Namespace, claim.Name)
	case claim.Status.Allocation == nil:
		return w.checkClasses(claim)
	}
	return nil
}

func (w *World) checkClasses(claim *resourcev1.ResourceClaim) error {
	for _, request := range claim.Spec.Devices.Requests {
		if request.Exactly != nil {
			if err := w.classes.check(request.Exactly.DeviceClassName, request.Name); err != nil {
				return err
			}
		}
		for _, sub := range request.FirstAvailable {
			if err := w.classes.check(sub.DeviceClassName, request.Name+"/"+sub.Name); err != nil {
				return err
			}
		}
		if request.Exactly == nil && len(request.FirstAvailable) == 0 {
			return fmt.Errorf("resource claim %s/%s, request %s: unknown request type", claim.Namespace, claim.Name, request.Name)
		}
	}
	return nil
}

// search looks for devices on one node after the other.
type search struct {
	structured.Allocator
	claims   []*resourcev1.ResourceClaim
	extended *Extended
	timeout  time.Duration
	fatal    error // concerns the claims or their classes, such as an expression that fails: it ends the search on all nodes
}

func (s *search) on(node *corev1.Node) ([]resourcev1.AllocationResult, error) {
	if s.fatal != nil {
		return nil, s.fatal
	}
	claims := s.claims
	if s.extended != nil {
		claim, _, err := s.extended.On(node)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			claims = append(claims[:len(claims):len(claims)], claim)
		}
	}
	if len(claims) == 0 {
		return nil, nil
	}
	results, err := s.allocate(node, claims)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.fatal = fmt.Errorf("node %s: timed out trying to allocate devices", node.Name)
		return nil, s.fatal
	case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
		s.fatal = err
		return nil, err
	case err != nil:
		return nil, err
	case len(results) != len(claims):
		return nil, errNotAll
	}
	return results, nil
}

func (s *search) allocate(node *corev1.Node, claims []*resourcev1.ResourceClaim) ([]resourcev1.AllocationResult, error) {
	ctx := context.Background()
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	return s.Allocate(ctx, node, claims)
}

// Upstream's words.
var (
	errNotAll = errors.New("cannot allocate all claims")
	errInUse  = errors.New("resourceclaim in use")
)

// classes is the lister as the search wants it.
type classes struct {
	resourcelisters.DeviceClassLister
}

// List lists all.
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	return c.DeviceClassLister.List(labels.Everything())
}

// check tells whether the class of a request exists.
func (c classes) check(class, request string) error {
	if _, err := c.Get(class); apierrors.IsNotFound(err) {
		return fmt.Errorf("request %s: device class %s does not exist", request, class)
	} else if err != nil {
		return err
	}
	return nil
}
