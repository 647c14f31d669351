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
	"k8s.io/dynamic-resource-allocation/structured"
)

// Limits of allocating. Both are upstream's.
const (
	// nodeTimeout is how long devices are looked for on one node.
	nodeTimeout = 10 * time.Second
	// expressionLimit bounds the compiled CEL expressions that are kept; the one not used for longest goes first.
	expressionLimit = 10
)

// features are those that upstream 1.37 switches on by default, but for binding conditions: devices with them are left out.
var features = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true,
	FractionalCapacityRange: true,
}

// Allocation is what a claim of a pod gets.
type Allocation struct {
	Claim *resourcev1.ResourceClaim
	// Result are the devices; nil if the claim has some already and the pod joins their users.
	Result *resourcev1.AllocationResult
}

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

// Allocator says which devices those of a pod's claims that have none would get on a node: one result for each such claim, in
// their order, or an error in upstream's words. It is nil if all claims have devices. The error says why no node can help.
func (w *World) Allocator(claims []*resourcev1.ResourceClaim) (func(*corev1.Node) ([]resourcev1.AllocationResult, error), error) {
	w.promises.prune(w.claims)
	var missing []*resourcev1.ResourceClaim
	for _, claim := range claims {
		if err := w.check(claim); err != nil {
			return nil, err
		}
		if claim.Status.Allocation == nil {
			missing = append(missing, claim)
		}
	}
	if len(missing) == 0 {
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
	search, err := structured.NewAllocator(context.Background(), features, w.promises.allocated(all), w.classes, slices, w.compiled)
	if err != nil {
		return nil, err
	}
	return onNode(search, missing), nil
}

// check looks at what no node can change.
func (w *World) check(claim *resourcev1.ResourceClaim) error {
	switch {
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

// onNode searches on one node after the other. An error that concerns the claims or their classes, such as an expression that
// fails, and a search that takes too long end the search on all nodes, as upstream's attempt ends.
func onNode(search structured.Allocator, claims []*resourcev1.ResourceClaim) func(*corev1.Node) ([]resourcev1.AllocationResult, error) {
	var fatal error
	return func(node *corev1.Node) ([]resourcev1.AllocationResult, error) {
		if fatal != nil {
			return nil, fatal
		}
		ctx, cancel := context.WithTimeout(context.Background(), nodeTimeout)
		defer cancel()
		results, err := search.Allocate(ctx, node, claims)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			fatal = fmt.Errorf("node %s: timed out trying to allocate devices", node.Name)
			return nil, fatal
		case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			fatal = err
			return nil, fatal
		case err != nil:
			return nil, err
		case len(results) != len(claims):
			return nil, errNotAll
		}
		return results, nil
	}
}

// errNotAll is upstream's.
var errNotAll = errors.New("cannot allocate all claims")

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
