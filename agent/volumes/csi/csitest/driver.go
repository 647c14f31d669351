package csitest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/setpoint-io/setpoint/agent/base/registration/registrationtest"
)

// Driver is one driver. The zero value has no capabilities.
type Driver struct {
	spec.UnimplementedNodeServer
	Name         string
	Info         *spec.NodeGetInfoResponse
	Capabilities []spec.NodeServiceCapability_RPC_Type
	// Usage is how full its volumes are.
	Usage []*spec.VolumeUsage
	// Mount, if set, does what a driver does on the machine.
	Mount Mounter

	mu       sync.Mutex
	calls    []string
	requests map[string]proto.Message
	fail     map[string]error
	hang     map[string]chan struct{}
}

// Mounter makes volumes appear and go.
type Mounter interface {
	Publish(request *spec.NodePublishVolumeRequest) error
	Unpublish(request *spec.NodeUnpublishVolumeRequest) error
}

// Fail makes a method fail until err is nil.
func (d *Driver) Fail(method string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		d.fail = map[string]error{}
	}
	d.fail[method] = err
}

// Hang makes a method wait for the end of its call until that is taken back, for calls that come later.
func (d *Driver) Hang(method string, hangs bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hang == nil {
		d.hang = map[string]chan struct{}{}
	}
	d.hang[method] = nil
	if hangs {
		d.hang[method] = make(chan struct{})
	}
}

// GoOn takes Hang back, and calls that wait are answered.
func (d *Driver) GoOn(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if hung := d.hang[method]; hung != nil {
		close(hung)
		d.hang[method] = nil
	}
}

// Calls are the methods that were called for volumes since the last Calls, each with its volume.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

// Saw tells whether a call was made since the last Calls.
func (d *Driver) Saw(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.calls, call)
}

// Last is the last request of a method; nil if there was none.
func (d *Driver) Last(method string) proto.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests[method]
}

func (d *Driver) called(ctx context.Context, method, volume string, request proto.Message) error {
	d.mu.Lock()
	d.calls = append(d.calls, strings.TrimSpace(method+" "+volume))
	if d.requests == nil {
		d.requests = map[string]proto.Message{}
	}
	d.requests[method] = request
	err, hung := d.fail[method], d.hang[method]
	d.mu.Unlock()
	if hung == nil {
		return err
	}
	select {
	case <-hung:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NodeGetInfo is the driver's.
func (d *Driver) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fail["NodeGetInfo"]; err != nil {
		return nil, err
	}
	if d.Info == nil {
		return &spec.NodeGetInfoResponse{NodeId: "node-of-" + d.Name}, nil
	}
	return d.Info, nil
}

// NodeGetCapabilities is the driver's.
func (d *Driver) NodeGetCapabilities(context.Context, *spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	out := &spec.NodeGetCapabilitiesResponse{}
	for _, c := range d.Capabilities {
		out.Capabilities = append(out.Capabilities, &spec.NodeServiceCapability{
			Type: &spec.NodeServiceCapability_Rpc{Rpc: &spec.NodeServiceCapability_RPC{Type: c}}})
	}
	return out, nil
}

// NodeStageVolume is the driver's.
func (d *Driver) NodeStageVolume(ctx context.Context, r *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	return &spec.NodeStageVolumeResponse{}, d.called(ctx, "Stage", r.VolumeId, r)
}

// NodeUnstageVolume is the driver's.
func (d *Driver) NodeUnstageVolume(ctx context.Context, r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	return &spec.NodeUnstageVolumeResponse{}, d.called(ctx, "Unstage", r.VolumeId, r)
}

// NodePublishVolume is the driver's.
func (d *Driver) NodePublishVolume(ctx context.Context, r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	err := d.called(ctx, "Publish", r.VolumeId, r)
	if err == nil && d.Mount != nil {
		err = d.Mount.Publish(r)
	}
	return &spec.NodePublishVolumeResponse{}, err
}

// NodeUnpublishVolume is the driver's.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	err := d.called(ctx, "Unpublish", r.VolumeId, r)
	if err == nil && d.Mount != nil {
		err = d.Mount.Unpublish(r)
	}
	return &spec.NodeUnpublishVolumeResponse{}, err
}

// NodeGetVolumeStats answers with Usage.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, r *spec.NodeGetVolumeStatsRequest) (*spec.NodeGetVolumeStatsResponse, error) {
	return &spec.NodeGetVolumeStatsResponse{Usage: d.Usage}, d.called(ctx, "Stats", r.VolumeId, r)
}

// NodeExpandVolume is the driver's.
func (d *Driver) NodeExpandVolume(ctx context.Context, r *spec.NodeExpandVolumeRequest) (*spec.NodeExpandVolumeResponse, error) {
	return &spec.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, d.called(ctx, "Expand", r.VolumeId, r)
}

// Serve answers on a socket of its own until the test ends.
func (d *Driver) Serve(t testing.TB) (endpoint string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	endpoint = filepath.Join(dir, "csi.sock")
	registrationtest.Serve(t, endpoint, func(s *grpc.Server) { spec.RegisterNodeServer(s, d) })
	return endpoint
}

// Registrar is what stands beside a driver and tells the node of it.
type Registrar struct {
	registration.UnimplementedRegistrationServer
	Info *registration.PluginInfo
	// Told is what came of it; it holds one.
	Told chan *registration.RegistrationStatus
	// Hang makes it answer nothing.
	Hang bool
}

// NewRegistrar announces a driver.
func NewRegistrar(name, endpoint string) *Registrar {
	return &Registrar{Told: make(chan *registration.RegistrationStatus, 1), Info: &registration.PluginInfo{
		Type: "CSIPlugin", Name: name, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"}}}
}

// Serve opens the socket until stop is called or the test ends.
func (r *Registrar) Serve(t testing.TB, socket string) (stop func()) {
	t.Helper()
	return registrationtest.Serve(t, socket, func(s *grpc.Server) { registration.RegisterRegistrationServer(s, r) })
}

// GetInfo is the plugin's.
func (r *Registrar) GetInfo(ctx context.Context, _ *registration.InfoRequest) (*registration.PluginInfo, error) {
	if r.Hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Info, nil
}

// NotifyRegistrationStatus is the plugin's.
func (r *Registrar) NotifyRegistrationStatus(
	_ context.Context, s *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	select {
	case <-r.Told:
	default:
	}
	r.Told <- s
	return &registration.RegistrationStatusResponse{}, nil
}
