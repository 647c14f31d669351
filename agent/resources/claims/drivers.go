package claims

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
	drabeta "k8s.io/kubelet/pkg/apis/dra/v1beta1"

	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// callTimeout bounds each call to a driver. Upstream's.
	callTimeout = 45 * time.Second
	// wipeDelay is how long the slices of a driver stay whose plugin is gone: it may be updated. Upstream's.
	wipeDelay = 30 * time.Second
	// Pauses after slices could not be deleted.
	wipeRetryMin = time.Second
	wipeRetryMax = time.Minute
)

var _ registration.Handler = (*Manager)(nil)

// drivers are those that have registered.
type drivers struct {
	mu sync.Mutex
	// byName has the plugins of a driver, the latest last: while it is updated there are two.
	byName map[string][]*driver
	// health of a driver's devices, as far as it tells.
	health map[string]map[deviceName]health
	// wiping ends what will delete a driver's slices.
	wiping map[string]context.CancelFunc
}

type driver struct {
	endpoint string
	conn     *grpc.ClientConn
	plugin   draapi.DRAPluginClient
	// leave ends what follows its health.
	leave context.CancelFunc
}

// get is the latest plugin of a driver.
func (d *drivers) get(name string) (draapi.DRAPluginClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.latest(name)
	if p == nil {
		return nil, fmt.Errorf("DRA driver %s is not registered", name)
	}
	return p.plugin, nil
}

// latest is nil if there is none. d.mu is held.
func (d *drivers) latest(name string) *driver {
	list := d.byName[name]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// put adds a plugin, in place of one with the same endpoint.
func (d *drivers) put(name string, next *driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(name, next.endpoint)
	d.byName[name] = append(d.byName[name], next)
	if cancel := d.wiping[name]; cancel != nil {
		cancel()
		delete(d.wiping, name)
	}
}

// drop removes a plugin, and reports whether that was the last one of its driver. d.mu is held.
func (d *drivers) drop(name, endpoint string) (last bool) {
	at := slices.IndexFunc(d.byName[name], func(p *driver) bool { return p.endpoint == endpoint })
	if at < 0 {
		return false
	}
	d.byName[name][at].close()
	d.byName[name] = slices.Delete(d.byName[name], at, at+1)
	return len(d.byName[name]) == 0
}

func (d *drivers) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.byName {
		for _, p := range list {
			p.close()
		}
	}
	clear(d.byName)
}

func (p *driver) close() {
	p.leave()
	_ = p.conn.Close()
}

// Validate says what is wrong with a driver's plugin.
func (m *Manager) Validate(name, _ string, versions []string) error {
	if !slices.Contains(versions, draapi.DRAPluginService) && !slices.Contains(versions, drabeta.DRAPluginService) {
		return fmt.Errorf("none of the gRPC services %v that the DRA plugin offers is %s or %s",
			versions, draapi.DRAPluginService, drabeta.DRAPluginService)
	}
	if len(name) > resourcev1.DriverNameMaxLength || len(utilvalidation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%q is not the name of a DRA driver", name)
	}
	return nil
}

// Register begins to use it.
func (m *Manager) Register(_ context.Context, name, endpoint string, versions []string) error {
	conn, err := registration.Dial(endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	d := &driver{endpoint: endpoint, conn: conn, plugin: clientOf(conn, versions), leave: cancel}
	m.drivers.put(name, d)
	if slices.Contains(versions, healthapi.DRAResourceHealthService) {
		m.children.Go(func() { m.watchHealth(ctx, name, d) })
	}
	return nil
}

// clientOf speaks the newest service that a plugin has.
func clientOf(conn *grpc.ClientConn, versions []string) draapi.DRAPluginClient {
	if slices.Contains(versions, draapi.DRAPluginService) {
		return draapi.NewDRAPluginClient(conn)
	}
	return drabeta.V1Beta1ClientWrapper{DRAPluginClient: drabeta.NewDRAPluginClient(conn)}
}

// Deregister ends that. If the driver has no other plugin here, its slices go after a while: pods could only wait for its devices.
func (m *Manager) Deregister(name, endpoint string) {
	m.drop(name, endpoint)
	for _, pod := range m.using(name, func(deviceName) bool { return true }) { // nothing is known of the health of its devices
		m.Affected(pod)
	}
}

func (m *Manager) drop(name, endpoint string) {
	m.drivers.mu.Lock()
	defer m.drivers.mu.Unlock()
	last := m.drivers.drop(name, endpoint)
	delete(m.drivers.health, name)
	if !last || m.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.drivers.wiping[name] = cancel
	m.children.Go(func() {
		if wait.For(ctx, wipeDelay) {
			m.wipe(ctx, name)
		}
	})
}

// wipe deletes the ResourceSlices of this node, of one driver or ("") of all, until that has worked.
func (m *Manager) wipe(ctx context.Context, driver string) {
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: m.NodeName}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	options := metav1.ListOptions{FieldSelector: selector.String()}
	for pause := wipeRetryMin; ; pause = min(2*pause, wipeRetryMax) {
		err := m.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, options)
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil { // a control plane of others may have no such resource
			return
		}
		m.Logger.Warn("cannot delete ResourceSlices yet", "driver", driver, "err", err)
		if !wait.For(ctx, pause) {
			return
		}
	}
}
