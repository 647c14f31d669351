package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/storage/volume"

	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

// ignored are kinds that nobody counts: Events come and go by the thousand.
var ignored = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

// meter measures the objects of one kind.
type meter struct {
	// counts are the names under which each object is one.
	counts []corev1.ResourceName
	// names reports whether the kind has to do with a name beyond counts.
	names func(corev1.ResourceName) bool
	// more is what an object uses beyond being there.
	more func(obj kind.Object) corev1.ResourceList
}

// alsoCounted are kinds that have a name of their own beside count/<resource>.
var alsoCounted = map[schema.GroupResource]corev1.ResourceName{
	{Resource: "services"}:               corev1.ResourceServices,
	{Resource: "secrets"}:                corev1.ResourceSecrets,
	{Resource: "configmaps"}:             corev1.ResourceConfigMaps,
	{Resource: "resourcequotas"}:         corev1.ResourceQuotas,
	{Resource: "persistentvolumeclaims"}: corev1.ResourcePersistentVolumeClaims,
	{Resource: "replicationcontrollers"}: corev1.ResourceReplicationControllers,
}

func meterOf(k *kind.Any) meter {
	gr := k.GroupResource()
	m := meter{counts: []corev1.ResourceName{generic.ObjectCountQuotaResourceNameFor(gr)}}
	if name, ok := alsoCounted[gr]; ok {
		m.counts = append(m.counts, name)
	}
	switch gr {
	case schema.GroupResource{Resource: "pods"}:
		m.names, m.more = isPodResource, podUsage
	case schema.GroupResource{Resource: "services"}:
		m.names, m.more = isServiceResource, serviceUsage
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		m.names, m.more = isClaimResource, claimUsage
	case schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceclaims"}:
		m.names, m.more = isDeviceResource, deviceUsage
	}
	return m
}

// limited are those of a quota's names that the kind has to do with.
func (m meter) limited(names []corev1.ResourceName) []corev1.ResourceName {
	var limited []corev1.ResourceName
	for _, name := range names {
		if quotav1.Contains(m.counts, name) || m.names != nil && m.names(name) {
			limited = append(limited, name)
		}
	}
	return limited
}

// usage is what an object uses of a quota: nothing if there is no object, or if the
// quota's scopes leave it out.
func (m meter) usage(q *corev1.ResourceQuota, obj kind.Object) corev1.ResourceList {
	if obj == nil || !inScopes(q, obj) {
		return nil
	}
	used := corev1.ResourceList{}
	for _, name := range m.counts {
		used[name] = one()
	}
	if m.more == nil {
		return used
	}
	return quotav1.Add(used, m.more(obj))
}

func one() resource.Quantity  { return *resource.NewQuantity(1, resource.DecimalSI) }
func zero() resource.Quantity { return *resource.NewQuantity(0, resource.DecimalSI) }

// isPodResource: compute resources, by themselves or as requests and limits, and what
// is requested of extended resources, which cannot be overcommitted.
func isPodResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	text := string(name)
	return strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(text, corev1.ResourceRequestsHugePagesPrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) &&
			isExtended(corev1.ResourceName(strings.TrimPrefix(text, corev1.DefaultResourceRequestsPrefix)))
}

func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// podUsage is nothing for a pod that has ended: only its object is counted.
func podUsage(obj kind.Object) corev1.ResourceList {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	o := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	used := computeUsage(resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o))
	used[corev1.ResourcePods] = one()
	return used
}

func computeUsage(requests, limits corev1.ResourceList) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name, amount := range requests {
		switch {
		case name == corev1.ResourceCPU,
			name == corev1.ResourceMemory,
			name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			used[name] = amount
			used[corev1.DefaultResourceRequestsPrefix+name] = amount
		case isExtended(name):
			used[corev1.DefaultResourceRequestsPrefix+name] = amount
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if amount, ok := limits[name]; ok {
			used["limits."+name] = amount
		}
	}
	return used
}

func isServiceResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceServicesNodePorts || name == corev1.ResourceServicesLoadBalancers
}

func serviceUsage(obj kind.Object) corev1.ResourceList {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return nil
	}
	used := corev1.ResourceList{}
	ports := int64(0)
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		used[corev1.ResourceServicesLoadBalancers] = one()
		ports = int64(len(service.Spec.Ports))
		if allocate := service.Spec.AllocateLoadBalancerNodePorts; allocate != nil && !*allocate {
			ports = explicitNodePorts(service)
		}
	case corev1.ServiceTypeNodePort:
		ports = int64(len(service.Spec.Ports))
	}
	used[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(ports, resource.DecimalSI)
	return used
}

func explicitNodePorts(service *corev1.Service) int64 {
	n := int64(0)
	for _, p := range service.Spec.Ports {
		if p.NodePort != 0 {
			n++
		}
	}
	return n
}

// classInfix stands between the name of a storage class and what is limited of it.
const classInfix = ".storageclass.storage.k8s.io/"

func isClaimResource(name corev1.ResourceName) bool {
	if name == corev1.ResourceRequestsStorage {
		return true
	}
	_, what, byClass := strings.Cut(string(name), classInfix)
	return byClass && (what == string(corev1.ResourceRequestsStorage) || what == string(corev1.ResourcePersistentVolumeClaims))
}

// claimUsage: storage counts as asked for, or as much as was allocated if that is
// more, in whole bytes.
func claimUsage(obj kind.Object) corev1.ResourceList {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	used := corev1.ResourceList{}
	class := corev1.ResourceName(volume.GetPersistentVolumeClaimClass(claim))
	if class != "" {
		used[class+classInfix+corev1.ResourcePersistentVolumeClaims] = one()
	}
	size, asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !asked {
		return used
	}
	if allocated, ok := claim.Status.AllocatedResources[corev1.ResourceStorage]; ok && allocated.Cmp(size) > 0 {
		size = allocated
	}
	size = size.DeepCopy()
	size.RoundUp(0)
	used[corev1.ResourceRequestsStorage] = size
	if class != "" {
		used[class+classInfix+corev1.ResourceRequestsStorage] = size
	}
	return used
}
