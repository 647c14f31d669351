package csi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
)

var _ registration.Handler = (*Manager)(nil)

// drivers are those that have registered. It is safe for concurrent use.
type drivers struct {
	mu     sync.Mutex
	byName map[string]*driver
}

// driver is one that has registered.
type driver struct {
	name, endpoint string
	version        *version.Version
	conn           *grpc.ClientConn
	node           spec.NodeClient
	can            map[spec.NodeServiceCapability_RPC_Type]bool
	// stop ends what is done for it again and again; nil: nothing is.
	stop context.CancelFunc
}

func (d *drivers) get(name string) (*driver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.byName[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name)
}

// put replaces a driver of the same name. Calls that the former one has under way fail and are made again.
func (d *drivers) put(next *driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.byName[next.name]; before != nil {
		before.close()
	}
	d.byName[next.name] = next
}

// remove tells whether there was one with this endpoint; another endpoint is a newer registration.
func (d *drivers) remove(name, endpoint string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.byName[name]
	if found == nil || found.endpoint != endpoint {
		return false
	}
	found.close()
	delete(d.byName, name)
	return true
}

func (d *drivers) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, each := range d.byName {
		each.close()
	}
	clear(d.byName)
}

func (d *driver) close() {
	if d.stop != nil {
		d.stop()
	}
	_ = d.conn.Close()
}

// highest is the highest version of CSI that both sides speak; only 1.x is spoken here.
func highest(versions []string) (*version.Version, error) {
	if len(versions) == 0 {
		return nil, errors.New("plugin returned an empty list for supported versions")
	}
	found, err := version.HighestSupportedVersion(versions)
	if err != nil {
		return nil, fmt.Errorf("none of the versions specified %q are supported. err=%w", versions, err)
	}
	return found, nil
}

// Validate says what is wrong with a driver that wants to register, in upstream's words.
func (m *Manager) Validate(name, endpoint string, versions []string) error {
	fail := func(err error) error {
		return fmt.Errorf("validation failed for CSI Driver %s at endpoint %s: %w", name, endpoint, err)
	}
	offered, err := highest(versions)
	if err != nil {
		return fail(err)
	}
	if slices.Contains(m.BuiltIn, name) {
		return fail(errors.New("the driver of this name is built in"))
	}
	m.drivers.mu.Lock()
	defer m.drivers.mu.Unlock()
	if d := m.drivers.byName[name]; d != nil && d.endpoint != endpoint && offered.LessThan(d.version) {
		return fail(fmt.Errorf("another driver with the same name is already registered with a higher supported version: %q", d.version))
	}
	return nil
}

// Register asks a driver what it knows of this node, writes that into the CSINode and uses the driver from now on.
func (m *Manager) Register(ctx context.Context, name, endpoint string, versions []string) error {
	newest, err := highest(versions)
	if err != nil {
		return err
	}
	conn, err := m.Dial(endpoint)
	if err != nil {
		return err
	}
	d := &driver{name: name, endpoint: endpoint, version: newest, conn: conn, node: spec.NewNodeClient(conn)}
	entry, err := d.introduce(ctx)
	if err != nil {
		d.close()
		return err
	}
	ctx, d.stop = context.WithCancel(m.work)
	m.drivers.put(d)
	m.Nodes.Set(entry)
	m.begin(func() { m.keepLimit(ctx, d) })
	for _, pod := range m.podsOf(name) {
		m.Affected(pod)
	}
	return nil
}

// begin runs f beside others, unless Run has ended.
func (m *Manager) begin(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work.Err() == nil {
		m.children.Go(f)
	}
}

// Deregister forgets a driver. The volumes that it has mounted stay.
func (m *Manager) Deregister(name, endpoint string) {
	if m.drivers.remove(name, endpoint) {
		m.Nodes.Remove(name)
	}
}

// introduce asks a driver for its node's name and limits, and for what it can do.
func (d *driver) introduce(ctx context.Context) (csinode.Driver, error) {
	info, err := call(ctx, d.node.NodeGetInfo, &spec.NodeGetInfoRequest{})
	if err != nil {
		return csinode.Driver{}, fmt.Errorf("NodeGetInfo: %w", err)
	}
	capabilities, err := call(ctx, d.node.NodeGetCapabilities, &spec.NodeGetCapabilitiesRequest{})
	if err != nil {
		return csinode.Driver{}, fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	d.can = map[spec.NodeServiceCapability_RPC_Type]bool{}
	for _, c := range capabilities.GetCapabilities() {
		d.can[c.GetRpc().GetType()] = true
	}
	return entryOf(d.name, info), nil
}

// entryOf is what the CSINode says of a driver.
func entryOf(name string, info *spec.NodeGetInfoResponse) csinode.Driver {
	labels := info.GetAccessibleTopology().GetSegments()
	entry := csinode.Driver{Labels: labels, CSINodeDriver: storagev1.CSINodeDriver{
		Name: name, NodeID: info.GetNodeId(), TopologyKeys: slices.Sorted(maps.Keys(labels))}}
	if n := info.GetMaxVolumesPerNode(); n > 0 {
		count := int32(min(n, int64(1<<31-1)))
		entry.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	return entry
}
