package claims

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// share is what a container has of a claim: all of it, or what satisfies a request. as is how its pod calls the claim.
type share struct{ claim, request, as string }

// shown is the name of a share in a pod's status.
func (s share) shown() corev1.ResourceName {
	if s.request == "" {
		return corev1.ResourceName("claim:" + s.as)
	}
	return corev1.ResourceName("claim:" + s.as + "/" + s.request)
}

// serves reports whether a request of the claim, or "" for all, has the device.
func (d device) serves(request string) bool {
	return request == "" || len(d.Requests) == 0 || slices.Contains(d.Requests, request)
}

// sharesOf are a container's, in the order of its spec.
func sharesOf(pod *corev1.Pod, c *corev1.Container) ([]share, error) {
	var out []share
	for _, asked := range c.Resources.Claims {
		for i := range pod.Spec.ResourceClaims {
			if pod.Spec.ResourceClaims[i].Name != asked.Name {
				continue
			}
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil {
				return nil, err
			}
			if name != nil {
				out = append(out, share{*name, asked.Request, asked.Name})
			}
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		for _, mapping := range extended.RequestMappings {
			if mapping.ContainerName == c.Name {
				out = append(out, share{extended.ResourceClaimName, mapping.RequestName, extended.ResourceClaimName})
			}
		}
	}
	return out, nil
}

// Given is what a container gets of its claims.
func (m *Manager) Given(pod *corev1.Pod, c *corev1.Container) (podconfig.Given, error) {
	var given podconfig.Given
	shares, err := sharesOf(pod, c)
	if err != nil {
		return given, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range shares {
		claim := m.claims[types.NamespacedName{Namespace: pod.Namespace, Name: s.claim}]
		if claim == nil || !claim.usedBy(pod.UID) {
			return given, fmt.Errorf("resource claim %s was not prepared for pod %s", s.claim, pod.Name)
		}
		for _, driver := range slices.Sorted(maps.Keys(claim.Drivers)) {
			for _, d := range claim.Drivers[driver] {
				if d.serves(s.request) {
					given.CDI = append(given.CDI, d.CDI...)
				}
			}
		}
	}
	return given, nil
}

// Resources are the claims that a container uses, with all their devices.
func (m *Manager) Resources(pod *corev1.Pod, c *corev1.Container) []*podresources.DynamicResource {
	shares, err := sharesOf(pod, c)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*podresources.DynamicResource
	told := map[string]bool{}
	for _, s := range shares {
		claim := m.claims[types.NamespacedName{Namespace: pod.Namespace, Name: s.claim}]
		if claim == nil || !claim.usedBy(pod.UID) || told[s.claim] {
			continue
		}
		told[s.claim] = true
		out = append(out, claim.resource())
	}
	return out
}

func (r *record) resource() *podresources.DynamicResource {
	out := &podresources.DynamicResource{ClaimName: r.Name, ClaimNamespace: r.Namespace}
	for _, driver := range slices.Sorted(maps.Keys(r.Drivers)) {
		for _, d := range r.Drivers[driver] {
			one := &podresources.ClaimResource{DriverName: driver, PoolName: d.Pool, DeviceName: d.Name, ShareId: d.ShareID}
			for _, name := range d.CDI {
				one.CdiDevices = append(one.CdiDevices, &podresources.CDIDevice{Name: name})
			}
			out.ClaimResources = append(out.ClaimResources, one)
		}
	}
	return out
}
