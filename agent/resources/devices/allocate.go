package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Allocate gives each container of a pod the devices that it asks for; those that it has already it keeps. On an error the pod
// has none. The error is for the pod's user, in upstream's words.
func (m *Manager) Allocate(ctx context.Context, pod *corev1.Pod) error {
	for c := range topology.Containers(pod) {
		if err := m.AllocateContainer(ctx, pod, c, 0); err != nil {
			m.Free(pod.UID)
			return err
		}
	}
	return nil
}

// Manages reports whether a resource is a plugin's, or was when somebody got it.
func (m *Manager) Manages(name corev1.ResourceName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.manages(string(name))
}

func (m *Manager) manages(resource string) bool {
	return m.stocks[resource] != nil || m.ledger.Knows(resource)
}

// give makes a container have what it wants of one resource.
func (m *Manager) give(ctx context.Context, want ledger.Want, near topology.Nodes) error {
	had, p, choice, err := m.choose(want, near)
	if err != nil || had {
		return err
	}
	var preferred []string
	if choice.Open() && m.optionsOf(p).GetGetPreferredAllocationAvailable() {
		if preferred, err = p.preferred(ctx, choice); err != nil {
			return err
		}
	}
	share, p, err := m.reserve(want, near, preferred)
	if err != nil {
		return err
	}
	response, err := p.allocate(ctx, share.IDs())
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		share.Response = response
		m.ledger.Put(share)
		err = m.save()
	}
	if err != nil {
		m.ledger.Drop(share.Key)
	}
	return err
}

// choose says what may be given, and by which plugin; had: the container has it.
func (m *Manager) choose(want ledger.Want, near topology.Nodes) (had bool, p *plugin, choice ledger.Choice, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.choice(want, near)
}

// choice is choose. m.mu is held.
func (m *Manager) choice(want ledger.Want, near topology.Nodes) (had bool, p *plugin, choice ledger.Choice, err error) {
	if share, ok := m.ledger.Share(want.Key()); ok {
		if have := len(share.Devices); have != want.Count {
			err = fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d",
				want.Pod.UID, want.Container, want.Resource, have, want.Count)
		}
		return true, nil, choice, err
	}
	var known map[string]ledger.Device
	if s := m.stocks[want.Resource]; s != nil {
		known, p = s.devices, s.plugin
	}
	if choice, err = m.ledger.Choose(want, known); err == nil && p == nil {
		err = noPlugin(want.Resource)
	}
	return false, p, choice.Near(near), err
}

// reserve chooses again, since others may have been faster, and enters the share before it lets go of m.mu: nobody else gets it
// from now on.
func (m *Manager) reserve(want ledger.Want, near topology.Nodes, preferred []string) (ledger.Share, *plugin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, p, choice, err := m.choice(want, near)
	if err != nil {
		return ledger.Share{}, nil, err
	}
	share := ledger.Share{Key: want.Key(), Devices: choice.Take(preferred)}
	m.ledger.Put(share)
	return share, p, nil
}

func noPlugin(resource string) error {
	return fmt.Errorf("endpoint for resource %s is not registered", resource)
}

func (m *Manager) optionsOf(p *plugin) *pluginapi.DevicePluginOptions {
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.options
}

func (p *plugin) preferred(ctx context.Context, choice ledger.Choice) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	must := ledger.Share{Devices: choice.Must}
	all := ledger.Share{Devices: slices.Concat(choice.Must, choice.Free)}
	request := &pluginapi.ContainerPreferredAllocationRequest{
		AvailableDeviceIDs: all.IDs(), MustIncludeDeviceIDs: must.IDs(), AllocationSize: int32(choice.Count),
	}
	answer, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{request},
	})
	if err != nil {
		return nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	if len(answer.ContainerResponses) == 0 {
		return nil, nil
	}
	return answer.ContainerResponses[0].GetDeviceIDs(), nil
}

var errNoAnswer = errors.New("no containers return in allocation response")

func (p *plugin) allocate(ctx context.Context, ids []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	switch {
	case err != nil:
		return nil, err
	case len(answer.ContainerResponses) == 0 || answer.ContainerResponses[0] == nil:
		return nil, errNoAnswer
	}
	if err := checkResponse(answer.ContainerResponses[0]); err != nil {
		return nil, fmt.Errorf("the device plugin of %s: %w", p.resource, err)
	}
	return proto.Marshal(answer.ContainerResponses[0])
}

func (p *plugin) preStart(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := p.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: ids}); err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

// Given is what a container gets with its devices. Call it before each of its incarnations is made: plugins may have to prepare for it.
func (m *Manager) Given(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (podconfig.Given, error) {
	var given podconfig.Given
	for _, want := range m.wants(pod, c) {
		if err := m.give(ctx, want, 0); err != nil { // it has it, unless the record was lost
			return given, err
		}
		more, err := m.prepared(ctx, want)
		if err != nil {
			return given, err
		}
		given.Merge(more)
	}
	return given, nil
}

func (m *Manager) prepared(ctx context.Context, want ledger.Want) (podconfig.Given, error) {
	m.mu.Lock()
	share, _ := m.ledger.Share(want.Key())
	var p *plugin
	var preStart bool
	if s := m.stocks[want.Resource]; s != nil {
		p, preStart = s.plugin, s.preStart
	}
	m.mu.Unlock()
	switch {
	case !preStart:
	case p == nil:
		return podconfig.Given{}, noPlugin(want.Resource)
	default:
		if err := p.preStart(ctx, share.IDs()); err != nil {
			return podconfig.Given{}, err
		}
	}
	return translate(share.Response)
}
