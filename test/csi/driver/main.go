// Command driver is the CSI driver that upstream's tests use here: upstream's mock, which keeps the books of volumes, attachments
// and mounts, with a folder or a loop device behind each volume, so that pods find their data again.
//
// It serves controller and node on one socket, and tells the node of itself as node-driver-registrar does.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const name = "mock.csi.setpoint.local"

func main() {
	agent := flag.String("agent-dir", "", "the agent's data directory, where it looks for plugins")
	dir := flag.String("dir", "", "folder of the volumes and of the driver's socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, agent, dir string) error {
	endpoint := filepath.Join(dir, "csi.sock")
	volumes := newVolumes(filepath.Join(dir, "volumes"))
	stop, err := serve(endpoint, func(s *grpc.Server) {
		spec.RegisterIdentityServer(s, volumes)
		spec.RegisterControllerServer(s, volumes)
		spec.RegisterNodeServer(s, volumes)
	}, grpc.UnaryInterceptor(new(turns).take))
	if err != nil {
		return err
	}
	defer stop()
	stopRegistrar, err := serve(filepath.Join(agent, "plugins_registry", name+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, registrar{endpoint: endpoint})
	})
	if err != nil {
		return err
	}
	defer stopRegistrar()
	<-ctx.Done()
	return nil
}

func serve(socket string, register func(*grpc.Server), options ...grpc.ServerOption) (stop func(), err error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(options...)
	register(server)
	go func() { _ = server.Serve(listener) }()
	return server.Stop, nil
}

// registrar is what node-driver-registrar is elsewhere.
type registrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
}

// GetInfo says where the driver is.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus ends the program if the node did not take the driver.
func (r registrar) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		fmt.Fprintln(os.Stderr, "driver: the node says:", status.Error)
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
