package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
)

const (
	// devicesMax bounds what a driver prepares for a claim; an allocation has at most 32 devices.
	devicesMax = 2 * resourcev1.AllocationResultsMaxSize
	// namesMax and nameBytesMax bound the CDI names of a device.
	namesMax     = 256
	nameBytesMax = 1024
)

// Prepare has drivers make ready what the pod's claims were allocated. It is called again after an error, and before each sandbox of
// the pod; what is ready stays so.
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	claims, err := m.fetch(ctx, pod)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if err := m.prepare(ctx, pod, c); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the pod's claims, each once, and says why one may not be used.
func (m *Manager) fetch(ctx context.Context, pod *corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	names, err := namesOf(pod)
	if err != nil {
		return nil, err
	}
	var out []*resourcev1.ResourceClaim
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c, err := m.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("failed to fetch ResourceClaim %s referenced by pod %s: %w", name, pod.Name, err)
		}
		if names[name] {
			if err := resourceclaim.IsForPod(pod, c, false); err != nil {
				return nil, err
			}
		}
		if c.Status.Allocation == nil {
			return nil, fmt.Errorf("resource claim %s is not allocated", name)
		}
		if !resourceclaim.IsReservedForPod(pod, c, false) {
			return nil, fmt.Errorf("pod %s (%s) is not allowed to use resource claim %s (%s)", pod.Name, pod.UID, c.Name, c.UID)
		}
		out = append(out, c)
	}
	return out, nil
}

// namesOf are the names of the pod's claims, and whether each has to be the pod's own.
func namesOf(pod *corev1.Pod) (map[string]bool, error) {
	names := map[string]bool{}
	for i := range pod.Spec.ResourceClaims {
		name, own, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, fmt.Errorf("prepare resource claim: %w", err)
		}
		if name != nil {
			names[*name] = names[*name] || own
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names[extended.ResourceClaimName] = true
	}
	return names, nil
}

func (m *Manager) prepare(ctx context.Context, pod *corev1.Pod, of *resourcev1.ResourceClaim) error {
	c, err := m.enter(ctx, pod.UID, of)
	if err != nil {
		return err
	}
	defer c.leave()
	if c.prepared {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Drivers)) {
		devices, err := m.prepareBy(ctx, name, &c.record)
		if err != nil {
			return err
		}
		m.mu.Lock()
		c.Drivers[name] = devices
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.prepared = true
	return m.save()
}

// enter notes on disk that the pod uses the claim, and takes the turn.
func (m *Manager) enter(ctx context.Context, pod types.UID, of *resourcev1.ResourceClaim) (*claim, error) {
	for {
		c, err := m.find(of)
		if err != nil {
			return nil, err
		}
		if err := c.take(ctx); err != nil {
			return nil, err
		}
		err = m.note(c, pod)
		if err == nil {
			return c, nil
		}
		c.leave()
		if !errors.Is(err, errLeft) {
			return nil, err
		}
	}
}

// find is the claim as it is known here, or a new one, which nobody sees before it is noted.
func (m *Manager) find(of *resourcev1.ResourceClaim) (*claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.claims[types.NamespacedName{Namespace: of.Namespace, Name: of.Name}]
	switch {
	case c == nil:
		c = newClaim(record{Namespace: of.Namespace, Name: of.Name, UID: of.UID, Drivers: map[string][]device{}})
		for _, result := range of.Status.Allocation.Devices.Results {
			c.Drivers[result.Driver] = nil
		}
	case c.UID != of.UID:
		return nil, fmt.Errorf("old resource claim with same name %s and different UID %s still exists", of.Name, c.UID)
	}
	return c, nil
}

// errLeft: the claim was unprepared, or another was entered, while somebody waited for the turn.
var errLeft = errors.New("the claim is another by now")

func (m *Manager) note(c *claim, pod types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.claims[c.key()]
	if known != c && (known != nil || len(c.Pods) > 0) {
		return errLeft
	}
	if c.usedBy(pod) {
		return nil
	}
	m.claims[c.key()] = c
	c.Pods = append(c.Pods, pod)
	return m.save()
}

// prepareBy asks one driver. The turn is held.
func (m *Manager) prepareBy(ctx context.Context, driver string, c *record) ([]device, error) {
	plugin, err := m.drivers.get(driver)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := plugin.NodePrepareResources(ctx, &draapi.NodePrepareResourcesRequest{Claims: []*draapi.Claim{c.message()}})
	if err != nil {
		return nil, fmt.Errorf("NodePrepareResources: %w", err)
	}
	result := answer.GetClaims()[string(c.UID)]
	switch {
	case result == nil:
		return nil, fmt.Errorf("NodePrepareResources skipped ResourceClaim %s", c.Name)
	case result.Error != "":
		return nil, fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", c.Name, result.Error)
	}
	devices, err := checked(result.Devices)
	if err != nil {
		return nil, fmt.Errorf("NodePrepareResources: DRA driver %s: %w", driver, err)
	}
	return devices, nil
}

func (r *record) message() *draapi.Claim {
	return &draapi.Claim{Namespace: r.Namespace, Uid: string(r.UID), Name: r.Name}
}

// checked is what a driver says, if it is of a sensible size.
func checked(list []*draapi.Device) ([]device, error) {
	if len(list) > devicesMax {
		return nil, fmt.Errorf("%d devices are more than %d", len(list), devicesMax)
	}
	out := []device{}
	for _, d := range list {
		if len(d.GetCdiDeviceIds()) > namesMax || len(d.GetRequestNames()) > namesMax {
			return nil, fmt.Errorf("device %q has more than %d names", d.GetDeviceName(), namesMax)
		}
		names := slices.Concat(d.GetCdiDeviceIds(), d.GetRequestNames(), []string{d.GetPoolName(), d.GetDeviceName(), d.GetShareId()})
		for _, name := range names {
			if len(name) > nameBytesMax {
				return nil, fmt.Errorf("a name of %d bytes is longer than %d", len(name), nameBytesMax)
			}
		}
		out = append(out, device{
			Pool: d.GetPoolName(), Name: d.GetDeviceName(), Requests: d.GetRequestNames(), CDI: d.GetCdiDeviceIds(), ShareID: d.ShareId,
		})
	}
	return out, nil
}

// Unprepare ends the pod's use of its claims. Call it when nothing of the pod runs any more, and again after an error.
func (m *Manager) Unprepare(ctx context.Context, pod types.UID) error {
	for _, c := range m.of(pod) {
		if err := m.unprepare(ctx, c, pod); err != nil {
			return err
		}
	}
	return nil
}

// of are the claims that the pod uses, by name.
func (m *Manager) of(pod types.UID) []*claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*claim
	for _, c := range m.claims {
		if c.usedBy(pod) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *claim) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (m *Manager) unprepare(ctx context.Context, c *claim, pod types.UID) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.leave()
	m.mu.Lock()
	uses, last := m.claims[c.key()] == c && c.usedBy(pod), len(c.Pods) == 1
	m.mu.Unlock()
	if !uses {
		return nil
	}
	if last {
		for _, name := range slices.Sorted(maps.Keys(c.Drivers)) {
			if err := m.unprepareBy(ctx, name, &c.record); err != nil {
				return err
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if last {
		delete(m.claims, c.key())
	} else {
		c.Pods = slices.DeleteFunc(c.Pods, func(uid types.UID) bool { return uid == pod })
	}
	if err := m.save(); err != nil { // the next agent does it again, which does no harm
		m.Logger.Warn("cannot write the record of resource claims", "err", err)
	}
	return nil
}

func (m *Manager) unprepareBy(ctx context.Context, driver string, c *record) error {
	plugin, err := m.drivers.get(driver)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := plugin.NodeUnprepareResources(ctx, &draapi.NodeUnprepareResourcesRequest{Claims: []*draapi.Claim{c.message()}})
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	result, ok := answer.GetClaims()[string(c.UID)]
	switch {
	case !ok:
		return fmt.Errorf("NodeUnprepareResources skipped ResourceClaim %s", c.Name)
	case result.GetError() != "":
		return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", c.Name, result.GetError())
	}
	return nil
}
