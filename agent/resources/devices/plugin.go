package devices

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
)

const (
	// connectTimeout is how long a plugin may take to open its socket and to say what it can do. Upstream's.
	connectTimeout = 10 * time.Second
	// callTimeout bounds each call for a container. Upstream's for PreStartContainer.
	callTimeout = pluginapi.KubeletPreStartContainerRPCTimeoutInSecs * time.Second
	// listPause is the least time between two lists of a plugin that are looked at: with one that never stops telling, pods and
	// the Node would be looked at without end.
	listPause = 100 * time.Millisecond
)

// plugin is a connection to one. All but options are set once; Manager.mu guards those.
type plugin struct {
	resource, endpoint string
	conn               *grpc.ClientConn
	client             pluginapi.DevicePluginClient
	ctx                context.Context
	cancel             context.CancelFunc
	options            *pluginapi.DevicePluginOptions
}

func dial(ctx context.Context, resource, endpoint string) (*plugin, error) {
	conn, err := registration.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	client := pluginapi.NewDevicePluginClient(conn)
	return &plugin{resource: resource, endpoint: endpoint, conn: conn, client: client, ctx: ctx, cancel: cancel}, nil
}

// follow takes in what a plugin tells, until it goes, talks nonsense or is replaced. A plugin that is back registers.
func (m *Manager) follow(p *plugin) {
	defer p.conn.Close()
	defer p.cancel()
	err := m.listen(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stocks[p.resource]
	if m.ctx.Err() != nil || s.plugin != p {
		return
	}
	m.Logger.Warn("a device plugin is gone", "resource", p.resource, "endpoint", p.endpoint, "err", err)
	s.leave(time.Now())
	m.tell(p.resource)
}

func (m *Manager) listen(p *plugin) error {
	ctx, cancel := context.WithTimeout(p.ctx, connectTimeout)
	defer cancel()
	options, err := p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("GetDevicePluginOptions: %w", err)
	}
	m.use(p, options)
	stream, err := p.client.ListAndWatch(p.ctx, &pluginapi.Empty{})
	if err != nil {
		return fmt.Errorf("ListAndWatch: %w", err)
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("ListAndWatch: %w", err)
		}
		devices, err := checkedDevices(list.Devices)
		if err != nil {
			return fmt.Errorf("ListAndWatch: %w", err)
		}
		m.listed(p, devices)
		if !wait.For(p.ctx, listPause) {
			return p.ctx.Err()
		}
	}
}

func (m *Manager) use(p *plugin, options *pluginapi.DevicePluginOptions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.options = options
	if s := m.stocks[p.resource]; s.plugin == p {
		s.preStart = options.GetPreStartRequired()
	}
}

// listed takes in all devices of a plugin.
func (m *Manager) listed(p *plugin, devices map[string]ledger.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stocks[p.resource]
	if s.plugin != p || maps.EqualFunc(s.devices, devices, sameHealth) {
		return
	}
	s.devices = devices
	if !s.recorded {
		s.recorded = true
		if err := m.save(); err != nil { // only that the resource was registered is lost
			m.Logger.Warn("cannot write the record of devices", "err", err)
		}
	}
	m.tell(p.resource)
}

func sameHealth(a, b ledger.Device) bool { return a.Healthy == b.Healthy }

// tell has others look at a resource that changed. m.mu is held, so they are told by another goroutine.
func (m *Manager) tell(resource string) {
	pods := map[types.UID]bool{}
	for _, share := range m.ledger.All() {
		pods[share.Pod] = pods[share.Pod] || share.Resource == resource
	}
	m.children.Go(func() {
		m.Changed()
		for pod, has := range pods {
			if has {
				m.Affected(pod)
			}
		}
	})
}
