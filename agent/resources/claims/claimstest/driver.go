package claimstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
	drabeta "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/setpoint-io/setpoint/agent/base/registration/registrationtest"
)

// Driver prepares one device for each claim. Set its fields before Serve.
type Driver struct {
	draapi.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	healthapi.UnimplementedDRAResourceHealthServer
	Name string
	// Beta: it has v1beta1 only.
	Beta bool
	// Health is what it tells of devices; nil: nothing.
	Health chan []*healthapi.DeviceHealth
	// Device for a claim. Nil: one of the pool "pool" and the claim's name, with the CDI name "example.com/dev=" and that.
	Device func(claim *draapi.Claim) *draapi.Device

	mu    sync.Mutex
	calls []string
	fail  string
	block chan struct{}
}

// Fail makes calls answer with an error for the claim, until it is "".
func (d *Driver) Fail(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = why
}

// Block makes calls wait until release is called.
func (d *Driver) Block() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	block := make(chan struct{})
	d.block = block
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.block = nil
		close(block)
	}
}

// Calls since the last time.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

// called notes a call, and returns the error for its claim.
func (d *Driver) called(ctx context.Context, what, claim string) (string, error) {
	d.mu.Lock()
	d.calls = append(d.calls, what+" "+claim)
	fail, block := d.fail, d.block
	d.mu.Unlock()
	if block == nil {
		return fail, nil
	}
	select {
	case <-block:
		return fail, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Serve opens a socket of its own until stop is called or the test ends; it answers as a driver and as what registers it.
func (d *Driver) Serve(t testing.TB) (socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dra") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "dra.sock")
	return socket, d.ServeAt(t, socket)
}

// ServeAt does it at a path, such as in plugins_registry of an agent.
func (d *Driver) ServeAt(t testing.TB, socket string) (stop func()) {
	t.Helper()
	return registrationtest.Serve(t, socket, func(server *grpc.Server) {
		if d.Beta {
			drabeta.RegisterDRAPluginServer(server, drabeta.V1ServerWrapper{DRAPluginServer: d})
		} else {
			draapi.RegisterDRAPluginServer(server, d)
		}
		healthapi.RegisterDRAResourceHealthServer(server, d)
		registration.RegisterRegistrationServer(server, d)
	})
}

// GetInfo is the plugin's.
func (d *Driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DRAPlugin, Name: d.Name, SupportedVersions: d.Services()}, nil
}

// Services that it has.
func (d *Driver) Services() []string {
	services := []string{draapi.DRAPluginService}
	if d.Beta {
		services = []string{drabeta.DRAPluginService}
	}
	if d.Health != nil {
		services = append(services, healthapi.DRAResourceHealthService)
	}
	return services
}

// NodeWatchResources is the driver's.
func (d *Driver) NodeWatchResources(
	_ *healthapi.NodeWatchResourcesRequest, stream grpc.ServerStreamingServer[healthapi.NodeWatchResourcesResponse],
) error {
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case devices := <-d.Health:
			if err := stream.Send(&healthapi.NodeWatchResourcesResponse{Devices: devices}); err != nil {
				return err
			}
		}
	}
}

// NotifyRegistrationStatus is the plugin's.
func (d *Driver) NotifyRegistrationStatus(
	context.Context, *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

// NodePrepareResources is the driver's.
func (d *Driver) NodePrepareResources(
	ctx context.Context, r *draapi.NodePrepareResourcesRequest,
) (*draapi.NodePrepareResourcesResponse, error) {
	answer := &draapi.NodePrepareResourcesResponse{Claims: map[string]*draapi.NodePrepareResourceResponse{}}
	for _, claim := range r.Claims {
		fail, err := d.called(ctx, "Prepare", claim.Name)
		if err != nil {
			return nil, err
		}
		answer.Claims[claim.Uid] = &draapi.NodePrepareResourceResponse{Error: fail, Devices: []*draapi.Device{d.device(claim)}}
	}
	return answer, nil
}

func (d *Driver) device(claim *draapi.Claim) *draapi.Device {
	if d.Device != nil {
		return d.Device(claim)
	}
	return &draapi.Device{PoolName: "pool", DeviceName: claim.Name, CdiDeviceIds: []string{fmt.Sprint("example.com/dev=", claim.Name)}}
}

// NodeUnprepareResources is the driver's.
func (d *Driver) NodeUnprepareResources(
	ctx context.Context, r *draapi.NodeUnprepareResourcesRequest,
) (*draapi.NodeUnprepareResourcesResponse, error) {
	answer := &draapi.NodeUnprepareResourcesResponse{Claims: map[string]*draapi.NodeUnprepareResourceResponse{}}
	for _, claim := range r.Claims {
		fail, err := d.called(ctx, "Unprepare", claim.Name)
		if err != nil {
			return nil, err
		}
		answer.Claims[claim.Uid] = &draapi.NodeUnprepareResourceResponse{Error: fail}
	}
	return answer, nil
}
