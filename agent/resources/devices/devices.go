package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
)

// checkpointName is a kubelet's.
const checkpointName = "kubelet_internal_checkpoint"

// resourcesMax bounds the resources that plugins may register.
const resourcesMax = 256

// Config of New; all of it is required.
type Config struct {
	// Dir is where plugins register and have their sockets; it exists.
	Dir string
	// Changed is called when the numbers of devices may have changed.
	Changed func()
	// Affected is called with a pod whose devices may have changed their health.
	Affected func(types.UID)
	Logger   *slog.Logger
}

// Manager knows the plugins of this node, and which pod has which of their devices. It is safe for concurrent use.
type Manager struct {
	Config
	ctx context.Context // of New: plugins are followed until it ends
	// fresh: there was no record when the agent started.
	fresh    bool
	children sync.WaitGroup

	mu     sync.Mutex
	ledger *ledger.Ledger
	stocks map[string]*stock // by resource
}

// New reads the record of an earlier agent, and removes its sockets. A record that is damaged is an error: without it devices would be
// given twice.
func New(ctx context.Context, cfg Config) (*Manager, error) {
	m := &Manager{Config: cfg, ctx: ctx, ledger: ledger.New(), stocks: map[string]*stock{}}
	if err := removeSockets(cfg.Dir); err != nil {
		return nil, fmt.Errorf("device plugins: %w", err)
	}
	data, err := os.ReadFile(m.checkpoint())
	if errors.Is(err, fs.ErrNotExist) {
		m.fresh = true
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device plugins: %w", err)
	}
	var resources []string
	if m.ledger, resources, err = ledger.Decode(data); err != nil {
		return nil, fmt.Errorf("device plugins: %w: stop the pods that use devices of plugins and remove %s", err, m.checkpoint())
	}
	for _, resource := range resources {
		m.stocks[resource] = &stock{devices: map[string]ledger.Device{}, gone: time.Now(), recorded: true}
	}
	return m, nil
}

func (m *Manager) checkpoint() string { return filepath.Join(m.Dir, checkpointName) }

// Fresh reports whether this node had no record of devices: what its Node says of resources of plugins is of an earlier machine.
func (m *Manager) Fresh() bool { return m.fresh }

// save writes the record. m.mu is held.
func (m *Manager) save() error {
	registered := map[string][]string{}
	for resource, s := range m.stocks {
		registered[resource] = s.healthy()
	}
	data, err := m.ledger.Encode(registered)
	if err != nil {
		return err
	}
	return private.WriteFile(m.checkpoint(), data)
}

// Counts are what the Node has of the plugins' resources, and how much of that is healthy. A resource whose plugin was gone for too long
// is told of as zero.
func (m *Manager) Counts() (capacity, allocatable corev1.ResourceList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	now := time.Now()
	for resource, s := range m.stocks {
		if s.expired(now) && len(s.devices) > 0 {
			m.Logger.Info("a device plugin did not come back", "resource", resource)
			clear(s.devices)
		}
		capacity[corev1.ResourceName(resource)], allocatable[corev1.ResourceName(resource)] = s.count()
	}
	return capacity, allocatable
}

// Free ends what a pod has. Call it when nothing of the pod runs any more.
func (m *Manager) Free(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ledger.Free(pod) {
		return
	}
	if err := m.save(); err != nil { // the next write has it too, and the next agent asks who is left
		m.Logger.Warn("cannot write the record of devices", "err", err)
	}
}

// Has reports whether a pod has devices.
func (m *Manager) Has(pod types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.Has(pod)
}

// Retain ends what pods have that keep does not name.
func (m *Manager) Retain(keep func(types.UID) bool) {
	m.mu.Lock()
	pods := m.ledger.Pods()
	m.mu.Unlock()
	for _, pod := range pods {
		if !keep(pod) {
			m.Free(pod)
		}
	}
}

// Shares are what a container has, sorted by resource.
func (m *Manager) Shares(pod types.UID, container string) []ledger.Share {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.Of(pod, container)
}

// Devices are all of a resource that plugins told of, by resource and sorted by ID.
func (m *Manager) Devices() map[string][]ledger.Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]ledger.Device{}
	for resource, s := range m.stocks {
		for _, id := range slices.Sorted(maps.Keys(s.devices)) {
			out[resource] = append(out[resource], s.devices[id])
		}
	}
	return out
}

// Status is the health of a container's devices; nil if it has none.
func (m *Manager) Status(pod types.UID, container string) []corev1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []corev1.ResourceStatus
	for _, share := range m.ledger.Of(pod, container) {
		status := corev1.ResourceStatus{Name: corev1.ResourceName(share.Resource)}
		for _, id := range share.IDs() {
			health := corev1.ResourceHealth{ResourceID: corev1.ResourceID(id), Health: m.stocks[share.Resource].health(id)}
			status.Resources = append(status.Resources, health)
		}
		out = append(out, status)
	}
	return out
}
