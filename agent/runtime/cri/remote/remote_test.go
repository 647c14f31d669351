package remote

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeRuntime answers what the test asks.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
}

func (fakeRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (fakeRuntime) PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return nil, status.Error(codes.NotFound, "no such sandbox")
}

func (fakeRuntime) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "sha256:1"}}}, nil
}

func (fakeRuntime) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

func serve(t *testing.T) (endpoint string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{})
	runtimeapi.RegisterImageServiceServer(server, fakeRuntime{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "unix://" + socket
}

func TestBothServicesOverOneSocket(t *testing.T) {
	runtime, err := New(t.Context(), Config{Endpoint: serve(t)})
	if err != nil {
		t.Fatal(err)
	}
	version, err := runtime.Version(t.Context(), "")
	if err != nil || version.RuntimeName != "fake" {
		t.Errorf("version %v %v", version, err)
	}
	images, err := runtime.ListImages(t.Context(), nil)
	if err != nil || len(images) != 1 {
		t.Errorf("images %v %v", images, err)
	}
	if _, err := runtime.PodSandboxStatus(t.Context(), "x", false); status.Code(err) != codes.NotFound {
		t.Errorf("the runtime's code is lost: %v", err)
	}
	if err := runtime.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewFails(t *testing.T) {
	if _, err := New(t.Context(), Config{}); !errors.Is(err, ErrNoEndpoint) {
		t.Errorf("no endpoint: %v", err)
	}
	nobody := Config{Endpoint: "unix://" + filepath.Join(t.TempDir(), "nobody.sock"), ConnectTimeout: 100 * time.Millisecond}
	if _, err := New(t.Context(), nobody); err == nil {
		t.Error("connected to nobody")
	}
}
