package devices

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// extendedName ends the base of the name of a claim for extended resources, nameMax and suffixMax are how long a name and what is
// added to its base may be, as where the API generates a name.
const (
	extendedName = "-extended-resources-"
	nameMax      = 63
	suffixMax    = 5
)

// Errors of pods with extended resources, in upstream's words.
var (
	errStale     = errors.New("cannot schedule extended resource claim")
	errNoneThere = errors.New("cannot fit resource")
)

// Extended are the extended resources that a pod requests, some of which devices can satisfy.
type Extended struct {
	// Stale is the claim of an earlier attempt, nil if there is none. No node helps before it is deleted.
	Stale *resourcev1.ResourceClaim

	pod     *corev1.Pod
	amounts map[corev1.ResourceName]int64
	classes map[corev1.ResourceName]string // of those that devices can satisfy
}

// Extended finds out which of the pod's extended resources devices can satisfy; nil if none.
func (w *World) Extended(pod *corev1.Pod) (*Extended, error) {
	if !namesExtended(pod) {
		return nil, nil
	}
	amounts := map[corev1.ResourceName]int64{}
	for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if !q.IsZero() && strings.Contains(string(name), "/") && isExtended(name) {
			amounts[name] = q.Value()
		}
	}
	if len(amounts) == 0 {
		return nil, nil
	}
	classes, err := w.classes.satisfying(amounts)
	if err != nil || len(classes) == 0 {
		return nil, err
	}
	all, err := w.claims.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	e := &Extended{pod: pod, amounts: amounts, classes: classes}
	for _, claim := range all {
		if IsExtended(claim) && metav1.IsControlledBy(claim, pod) {
			e.Stale = claim
		}
	}
	return e, nil
}

// namesExtended tells whether the pod may want any extended resource. Nearly no pod does, and the sums of all requests cost more
// than the rest of trying a pod again.
func namesExtended(pod *corev1.Pod) bool {
	if pod.Spec.Overhead != nil || pod.Spec.Resources != nil {
		return true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}

// isExtended tells of a resource of somebody else than Kubernetes, or of one that names a class of devices.
func isExtended(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}

// IsExtended tells of a claim that was made for extended resources.
func IsExtended(claim *resourcev1.ResourceClaim) bool {
	return claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

// satisfying are the names of the classes for the resources, as far as there are any. Of two classes for a resource the
// younger one is taken, so that one can replace the other.
func (c classes) satisfying(amounts map[corev1.ResourceName]int64) (map[corev1.ResourceName]string, error) {
	all, err := c.List()
	if err != nil {
		return nil, err
	}
	found := map[corev1.ResourceName]*resourcev1.DeviceClass{}
	for _, class := range all {
		if name := class.Spec.ExtendedResourceName; name != nil {
			if other := found[corev1.ResourceName(*name)]; other == nil || isPreferred(class, other) {
				found[corev1.ResourceName(*name)] = class
			}
		}
		found[corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix+class.Name)] = class
	}
	names := map[corev1.ResourceName]string{}
	for resource := range amounts {
		if class := found[resource]; class != nil {
			names[resource] = class.Name
		}
	}
	return names, nil
}

func isPreferred(a, b *resourcev1.DeviceClass) bool {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), strings.Compare(b.Name, a.Name)) > 0
}

// ByDevices tells whether devices satisfy a resource on nodes that do not count it themselves.
func (e *Extended) ByDevices(resource corev1.ResourceName) bool {
	return e.classes[resource] != ""
}

// On is the claim for the resources that devices have to satisfy on a node, and which request of it serves which container. The
// claim is nil if the node counts all of them itself. The error says why the node cannot help.
func (e *Extended) On(node *corev1.Node) (*resourcev1.ResourceClaim, []corev1.ContainerExtendedResourceRequest, error) {
	if e.Stale != nil {
		return nil, nil, errStale
	}
	wanted := map[corev1.ResourceName]string{}
	for resource := range e.amounts {
		there, counted := node.Status.Allocatable[resource]
		switch {
		case e.ByDevices(resource) && there.IsZero():
			wanted[resource] = e.classes[resource]
		case !counted:
			return nil, nil, errNoneThere
		}
	}
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	claim := e.newClaim()
	mappings := addRequests(claim, e.pod, wanted)
	return claim, mappings, nil
}

// newClaim is a claim without requests. Its name follows from the pod, so it is not made twice when an answer is lost; its uid is
// a stand-in until it is stored.
func (e *Extended) newClaim() *resourcev1.ResourceClaim {
	base := e.pod.Name + extendedName
	base = base[:min(len(base), nameMax-suffixMax)]
	sum := sha256.Sum256([]byte(e.pod.UID))
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.pod.Namespace, GenerateName: base, Name: base + hex.EncodeToString(sum[:])[:suffixMax],
		UID:         types.UID(extendedName + string(e.pod.UID)),
		Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: e.pod.Name, UID: e.pod.UID, Controller: new(true),
		}},
	}}
}

// addRequests adds to a claim what the pod's containers need of the classes of the resources, and gives which request serves which
// container. Containers that run at the same time get devices of their own. Those that run one after the other, before the rest,
// share devices among themselves and with the containers after them.
func addRequests(
	claim *resourcev1.ResourceClaim, pod *corev1.Pod, classes map[corev1.ResourceName]string,
) []corev1.ContainerExtendedResourceRequest {
	var mappings []corev1.ContainerExtendedResourceRequest
	for _, resource := range slices.Sorted(maps.Keys(classes)) {
		s := sharing{
			resource: resource, class: classes[resource],
			containers: slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), inits: len(pod.Spec.InitContainers),
		}
		requests, served := s.split()
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, requests...)
		mappings = append(mappings, served...)
	}
	slices.SortFunc(claim.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int { return strings.Compare(a.Name, b.Name) })
	return mappings
}

// sharing is how the containers of a pod share the devices for one resource.
type sharing struct {
	resource   corev1.ResourceName
	class      string
	containers []corev1.Container
	inits      int // how many of them are init containers
}

// split gives the requests for the devices, and which of them serve which container.
func (s *sharing) split() (requests []resourcev1.DeviceRequest, served []corev1.ContainerExtendedResourceRequest) {
	lasting := make([]*resourcev1.DeviceRequest, len(s.containers))
	for i := range s.containers {
		if s.lasts(i) {
			request, mappings := s.request(i, nil)
			lasting[i] = request
			served = append(served, mappings...)
		}
	}
	var most *resourcev1.DeviceRequest
	var passing []corev1.ContainerExtendedResourceRequest
	names := map[string]bool{}
	for i := range s.containers {
		if s.lasts(i) {
			continue
		}
		request, mappings := s.request(i, lasting[i:])
		passing = append(passing, mappings...)
		if request != nil {
			names[request.Name] = true
			if most == nil || most.Exactly.Count < request.Exactly.Count {
				most = request
			}
		}
	}
	for i := range passing {
		if names[passing[i].RequestName] {
			passing[i].RequestName = most.Name // the largest of these requests serves all of them, one after the other
		}
	}
	for _, request := range append([]*resourcev1.DeviceRequest{most}, lasting...) {
		if request != nil {
			requests = append(requests, *request)
		}
	}
	return requests, append(served, passing...)
}

// lasts tells of a container that does not end before the others start.
func (s *sharing) lasts(i int) bool {
	policy := s.containers[i].RestartPolicy
	return i >= s.inits || policy != nil && *policy == corev1.ContainerRestartPolicyAlways
}

// request is what a container needs beyond the requests that it can use too; nil if nothing.
func (s *sharing) request(i int, others []*resourcev1.DeviceRequest) (
	*resourcev1.DeviceRequest, []corev1.ContainerExtendedResourceRequest,
) {
	container := &s.containers[i]
	quantity := container.Resources.Requests[s.resource]
	wanted, ok := quantity.AsInt64()
	if !ok || wanted == 0 {
		return nil, nil
	}
	var mappings []corev1.ContainerExtendedResourceRequest
	use := func(request string) {
		mappings = append(mappings, corev1.ContainerExtendedResourceRequest{
			ContainerName: container.Name, ResourceName: string(s.resource), RequestName: request,
		})
	}
	for _, other := range others {
		if other == nil {
			continue
		}
		use(other.Name)
		if wanted -= other.Exactly.Count; wanted <= 0 {
			return nil, mappings
		}
	}
	index := slices.Index(slices.Sorted(maps.Keys(container.Resources.Requests)), s.resource)
	request := &resourcev1.DeviceRequest{
		Name: fmt.Sprintf("container-%d-request-%d", i, index),
		Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: s.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: wanted,
		},
	}
	use(request.Name)
	return request, mappings
}
