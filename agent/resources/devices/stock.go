package devices

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
)

// gracePeriod is how long the devices of a plugin that is gone count as there, and unhealthy. Upstream's.
const gracePeriod = 5 * time.Minute

// stock is all that is known of a resource. Manager.mu guards it.
type stock struct {
	devices map[string]ledger.Device // by ID
	// plugin is nil while there is none; then gone is since when.
	plugin *plugin
	gone   time.Time
	// recorded: the file says that there is such a resource.
	recorded bool
	// preStart: the latest plugin has to prepare for each container. After a start of the agent nothing is known of that, and then a
	// container does not wait for its plugin, as with a kubelet.
	preStart bool
}

func (s *stock) expired(now time.Time) bool { return s.plugin == nil && now.Sub(s.gone) >= gracePeriod }

// healthy are the IDs of the healthy devices, sorted.
func (s *stock) healthy() []string {
	ids := []string{}
	for _, id := range slices.Sorted(maps.Keys(s.devices)) {
		if s.devices[id].Healthy {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *stock) count() (all, healthy resource.Quantity) {
	return *resource.NewQuantity(int64(len(s.devices)), resource.DecimalSI), *resource.NewQuantity(int64(len(s.healthy())), resource.DecimalSI)
}

// health of a device; s may be nil. Of one that its plugin has not told of since the agent started nothing is known.
func (s *stock) health(id string) corev1.ResourceHealthStatus {
	if s == nil {
		return corev1.ResourceHealthStatusUnknown
	}
	device, ok := s.devices[id]
	switch {
	case !ok:
		return corev1.ResourceHealthStatusUnknown
	case device.Healthy:
		return corev1.ResourceHealthStatusHealthy
	default:
		return corev1.ResourceHealthStatusUnhealthy
	}
}

// leave: all devices of a plugin that is gone are unhealthy.
func (s *stock) leave(now time.Time) {
	s.plugin, s.gone = nil, now
	for id, device := range s.devices {
		device.Healthy = false
		s.devices[id] = device
	}
}
