package devicestest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/base/registration/registrationtest"
)

// Plugin has devices of one resource. Set its fields before Serve.
type Plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	Resource string
	Options  pluginapi.DevicePluginOptions
	// Response to Allocate for these devices. Nil: none, and no error.
	Response func(ids []string) (*pluginapi.ContainerAllocateResponse, error)
	// Prefer chooses among devices.
	Prefer func(available []string) []string

	mu      sync.Mutex
	devices []*pluginapi.Device
	changed chan struct{} // closed when devices changes
	calls   []string
}

// New has healthy devices of these IDs, and ill ones with "!" before theirs.
func New(resource string, ids ...string) *Plugin {
	p := &Plugin{Resource: resource, changed: make(chan struct{})}
	p.Set(ids...)
	return p
}

// Set changes the devices.
func (p *Plugin) Set(ids ...string) {
	var list []*pluginapi.Device
	for _, id := range ids {
		name, ill := strings.CutPrefix(id, "!")
		health := pluginapi.Healthy
		if ill {
			health = pluginapi.Unhealthy
		}
		list = append(list, &pluginapi.Device{ID: name, Health: health, Topology: &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: 0}}}})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = list
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls since the last time.
func (p *Plugin) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

func (p *Plugin) called(what string, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, what+" "+strings.Join(ids, " "))
}

// Serve opens a socket in dir until stop is called or the test ends. The socket is removed then.
func (p *Plugin) Serve(t testing.TB, dir, name string) (stop func()) {
	t.Helper()
	return registrationtest.Serve(t, filepath.Join(dir, name), func(server *grpc.Server) { pluginapi.RegisterDevicePluginServer(server, p) })
}

// Register tells the agent whose folder dir is of the socket.
func (p *Plugin) Register(ctx context.Context, dir, name string) error {
	return Register(ctx, dir, &pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: name, ResourceName: p.Resource})
}

// Register sends any request, and waits until somebody answers.
func Register(ctx context.Context, dir string, r *pluginapi.RegisterRequest) error {
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, r, grpc.WaitForReady(true))
	return err
}

// GetDevicePluginOptions is the plugin's.
func (p *Plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{
		PreStartRequired: p.Options.PreStartRequired, GetPreferredAllocationAvailable: p.Options.GetPreferredAllocationAvailable,
	}, nil
}

// ListAndWatch is the plugin's.
func (p *Plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		list, changed := p.devices, p.changed
		p.mu.Unlock()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-changed:
		}
	}
}

// GetPreferredAllocation is the plugin's.
func (p *Plugin) GetPreferredAllocation(
	_ context.Context, r *pluginapi.PreferredAllocationRequest,
) (*pluginapi.PreferredAllocationResponse, error) {
	one := r.ContainerRequests[0]
	p.called(fmt.Sprintf("Prefer %d of", one.AllocationSize), one.AvailableDeviceIDs)
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{
		{DeviceIDs: p.Prefer(slices.Clone(one.AvailableDeviceIDs))}}}, nil
}

// Allocate is the plugin's.
func (p *Plugin) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	ids := r.ContainerRequests[0].DevicesIds
	p.called("Allocate", ids)
	answer := &pluginapi.AllocateResponse{}
	if p.Response != nil {
		one, err := p.Response(ids)
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

// PreStartContainer is the plugin's.
func (p *Plugin) PreStartContainer(_ context.Context, r *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	p.called("PreStart", r.DevicesIds)
	return &pluginapi.PreStartContainerResponse{}, nil
}
