package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// healthTimeout is how long what a driver said of a device counts if it does not say so itself. Upstream's.
	healthTimeout    = 30 * time.Second
	healthTimeoutMax = 24 * time.Hour
	// healthRetry is the pause before a driver is asked again whose stream has ended.
	healthRetry = 5 * time.Second
	// healthPause is the least time between two answers of a driver that are looked at.
	healthPause = 100 * time.Millisecond
	// healthDevicesMax bounds the devices of which one driver tells.
	healthDevicesMax = 10_000
)

// deviceName is one of a driver's devices.
type deviceName struct{ pool, name string }

// health is what a driver said of a device, and how long that counts.
type health struct {
	status  corev1.ResourceHealthStatus
	message string
	until   time.Time
}

// now is what counts at a time: what is too old says nothing.
func (h health) now(at time.Time) health {
	if h.status == "" || at.After(h.until) {
		return health{status: corev1.ResourceHealthStatusUnknown}
	}
	return h
}

// watchHealth follows what a driver's plugin tells of the health of devices, until ctx ends or the plugin turns out not to know.
func (m *Manager) watchHealth(ctx context.Context, name string, d *driver) {
	for {
		err := m.hear(ctx, name, d)
		if ctx.Err() != nil || grpcstatus.Code(err) == codes.Unimplemented {
			return
		}
		m.Logger.Warn("a DRA driver tells no more of the health of devices", "driver", name, "err", err)
		m.learn(name, d, nil)
		if !wait.For(ctx, healthRetry) {
			return
		}
	}
}

func (m *Manager) hear(ctx context.Context, name string, d *driver) error {
	stream, err := healthapi.NewDRAResourceHealthClient(d.conn).NodeWatchResources(ctx, &healthapi.NodeWatchResourcesRequest{})
	if err != nil {
		return err
	}
	known := map[deviceName]health{}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := update(known, answer.GetDevices(), time.Now()); err != nil {
			return err
		}
		m.learn(name, d, maps.Clone(known))
		if !wait.For(ctx, healthPause) {
			return ctx.Err()
		}
	}
}

var errTooManyDevices = fmt.Errorf("it tells of more than %d devices", healthDevicesMax)

// update enters what a driver says; of devices that it leaves out the former word counts until it is too old.
func update(known map[deviceName]health, list []*healthapi.DeviceHealth, now time.Time) error {
	for _, d := range list {
		of := deviceName{d.GetDevice().GetPoolName(), d.GetDevice().GetDeviceName()}
		if len(of.pool)+len(of.name) > nameBytesMax {
			return errors.New("the name of a device is too long")
		}
		known[of] = healthOf(d, now)
	}
	if len(known) > healthDevicesMax {
		return errTooManyDevices
	}
	return nil
}

func healthOf(d *healthapi.DeviceHealth, now time.Time) health {
	h := health{status: corev1.ResourceHealthStatusUnknown, message: shortened(d.Message)}
	switch d.Health {
	case healthapi.HealthStatus_HEALTHY:
		h.status = corev1.ResourceHealthStatusHealthy
	case healthapi.HealthStatus_UNHEALTHY:
		h.status = corev1.ResourceHealthStatusUnhealthy
	}
	timeout := healthTimeout
	if s := d.HealthCheckTimeoutSeconds; s > 0 {
		timeout = time.Duration(min(s, int64(healthTimeoutMax/time.Second))) * time.Second
	}
	at := time.Unix(d.LastUpdatedTime, 0)
	if d.LastUpdatedTime <= 0 || at.After(now) {
		at = now
	}
	h.until = at.Add(timeout)
	return h
}

// shortened is a message as the API takes it.
func shortened(text string) string {
	const dots = "..."
	if len(text) <= corev1.ResourceHealthMessageMaxLength {
		return text
	}
	return strings.ToValidUTF8(text[:corev1.ResourceHealthMessageMaxLength-len(dots)], "") + dots
}

// learn replaces what is known of a driver's devices, if it is the driver's latest plugin that says so, and has pods looked at whose
// devices are concerned.
func (m *Manager) learn(name string, d *driver, known map[deviceName]health) {
	m.drivers.mu.Lock()
	before, latest := m.drivers.health[name], m.drivers.latest(name) == d
	if latest {
		m.drivers.health[name] = known
	}
	m.drivers.mu.Unlock()
	if !latest {
		return
	}
	now := time.Now()
	for _, pod := range m.using(name, func(of deviceName) bool {
		a, b := before[of].now(now), known[of].now(now)
		return a.status != b.status || a.message != b.message
	}) {
		m.Affected(pod)
	}
}

// using are the pods that have a device of the driver for which changed is true.
func (m *Manager) using(driver string, changed func(deviceName) bool) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []types.UID
	for _, c := range m.claims {
		if slices.ContainsFunc(c.Drivers[driver], func(d device) bool { return changed(deviceName{d.Pool, d.Name}) }) {
			out = append(out, c.Pods...)
		}
	}
	return out
}

// Status is the health of the devices that a container has by claims; nil if it has none.
func (m *Manager) Status(pod *corev1.Pod, c *corev1.Container) []corev1.ResourceStatus {
	shares, err := sharesOf(pod, c)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drivers.mu.Lock()
	defer m.drivers.mu.Unlock()
	now := time.Now()
	var out []corev1.ResourceStatus
	for _, s := range shares {
		claim := m.claims[types.NamespacedName{Namespace: pod.Namespace, Name: s.claim}]
		if claim == nil || !claim.usedBy(pod.UID) {
			continue
		}
		status := corev1.ResourceStatus{Name: s.shown()}
		for _, driver := range slices.Sorted(maps.Keys(claim.Drivers)) {
			for _, d := range claim.Drivers[driver] {
				if d.serves(s.request) {
					status.Resources = append(status.Resources, m.drivers.health[driver][deviceName{d.Pool, d.Name}].now(now).of(driver, d))
				}
			}
		}
		known := slices.ContainsFunc(out, func(have corev1.ResourceStatus) bool { return have.Name == status.Name })
		if len(status.Resources) > 0 && !known {
			out = append(out, status)
		}
	}
	return out
}

func (h health) of(driver string, d device) corev1.ResourceHealth {
	out := corev1.ResourceHealth{ResourceID: corev1.ResourceID(driver + "/" + d.Pool + "/" + d.Name), Health: h.status}
	if h.message != "" {
		out.Message = &h.message
	}
	return out
}
