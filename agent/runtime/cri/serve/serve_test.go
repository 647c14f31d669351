package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	criclient "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// fake is a runtime of which a test uses a few calls; the others would panic.
type fake struct {
	cri.Runtime
	asked  []string
	events chan *runtimeapi.ContainerEventResponse
}

func (f *fake) Version(_ context.Context, version string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (f *fake) StopContainer(_ context.Context, id string, timeout int64) error {
	f.asked = append(f.asked, fmt.Sprint("stop ", id, " ", timeout))
	return nil
}

func (f *fake) ExecSync(_ context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	f.asked = append(f.asked, fmt.Sprint("exec ", id, " ", command, " ", timeout))
	switch command[0] {
	case "false":
		return []byte("out"), []byte("err"), utilexec.CodeExitError{Code: 3, Err: errors.New("exit code 3")}
	case "slow":
		return nil, nil, status.Error(codes.DeadlineExceeded, "timed out")
	}
	return []byte("out"), nil, nil
}

func (f *fake) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

func (f *fake) ListPodSandbox(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	items := make([]*runtimeapi.PodSandbox, 2*chunkItems+1)
	for i := range items {
		items[i] = &runtimeapi.PodSandbox{Id: fmt.Sprint(i), Metadata: &runtimeapi.PodSandboxMetadata{}}
	}
	return items, nil
}

func (f *fake) PullImage(_ context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	f.asked = append(f.asked, "pull "+image.GetImage()+" as "+auth.GetUsername())
	return "sha256:1", nil
}

func (f *fake) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil // each client of images begins with this question
}

func (f *fake) GetContainerEvents(ctx context.Context, to chan *runtimeapi.ContainerEventResponse,
	_ func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	for {
		select {
		case event := <-f.events:
			to <- event
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start serves f until the test ends or stop is called, which returns how Run ended.
func start(t *testing.T, f *fake) (endpoint string, stop func() error) {
	t.Helper()
	endpoint = scheme + filepath.Join(t.TempDir(), "run", "cri.sock")
	listener, err := Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, listener, Config{Runtime: f, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	}()
	once := false
	stop = func() error {
		if once {
			return nil
		}
		once = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return endpoint, stop
}

func connect(t *testing.T, endpoint string) (internalapi.RuntimeService, internalapi.ImageManagerService) {
	t.Helper()
	const patience = 10 * time.Second
	runtime, err := criclient.NewRemoteRuntimeService(t.Context(), endpoint, patience, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	images, err := criclient.NewRemoteImageService(t.Context(), endpoint, patience, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(runtime.Close(context.Background()), images.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return runtime, images
}

func TestCallsReachTheRuntime(t *testing.T) {
	f := &fake{}
	endpoint, _ := start(t, f)
	runtime, images := connect(t, endpoint)
	if version, err := runtime.Version(t.Context(), ""); err != nil || version.RuntimeName != "fake" {
		t.Errorf("version %v %v", version, err)
	}
	if err := runtime.StopContainer(t.Context(), "c", 7); err != nil {
		t.Error(err)
	}
	if id, err := images.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "i"}, &runtimeapi.AuthConfig{Username: "u"}, nil); err != nil || id != "sha256:1" {
		t.Errorf("pull %q %v", id, err)
	}
	if _, err := runtime.ContainerStatus(t.Context(), "gone", false); status.Code(err) != codes.NotFound {
		t.Errorf("the runtime's code is lost: %v", err)
	}
	// This client asks for a stream, since it was told to.
	if pods, err := runtime.ListPodSandbox(t.Context(), nil); err != nil || len(pods) != 2*chunkItems+1 || pods[chunkItems].Id != fmt.Sprint(chunkItems) {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	if got := strings.Join(f.asked, ", "); got != "stop c 7, pull i as u" {
		t.Errorf("asked: %s", got)
	}
}

func TestExecSyncAnswersWithTheExitCode(t *testing.T) {
	endpoint, _ := start(t, &fake{})
	runtime, _ := connect(t, endpoint)
	stdout, stderr, err := runtime.ExecSync(t.Context(), "c", []string{"false"}, time.Second)
	failed, ok := errors.AsType[utilexec.CodeExitError](err)
	if !ok || failed.Code != 3 || string(stdout) != "out" || string(stderr) != "err" {
		t.Errorf("%q %q %v", stdout, stderr, err)
	}
	if _, _, err := runtime.ExecSync(t.Context(), "c", []string{"slow"}, time.Second); !errors.Is(err, criclient.ErrCommandTimedOut) {
		t.Errorf("a timeout is %v", err)
	}
	if _, _, err := runtime.ExecSync(t.Context(), "c", []string{"true"}, -time.Second); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a negative timeout is %v", err)
	}
}

func TestEventsEndWithTheServer(t *testing.T) {
	f := &fake{events: make(chan *runtimeapi.ContainerEventResponse)}
	endpoint, stop := start(t, f)
	runtime, _ := connect(t, endpoint)
	got := make(chan *runtimeapi.ContainerEventResponse)
	ended := make(chan error, 1)
	go func() { ended <- runtime.GetContainerEvents(t.Context(), got, nil) }()
	f.events <- &runtimeapi.ContainerEventResponse{ContainerId: "c"}
	if event := <-got; event.ContainerId != "c" {
		t.Errorf("event %v", event)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the subscriber was not told")
	}
}

func TestSocketIsForItsOwnerAlone(t *testing.T) {
	endpoint, stop := start(t, &fake{})
	path := strings.TrimPrefix(endpoint, scheme)
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	if _, err := Listen(t.Context(), endpoint); !errors.Is(err, ErrServed) {
		t.Errorf("a socket in use: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left after the end: %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "cri.sock")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	// What a process leaves that was killed.
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(t.Context(), scheme+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListenRefuses(t *testing.T) {
	open, file, private := t.TempDir(), filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "private")
	if err := errors.Join(os.Chmod(open, 0o755), os.WriteFile(file, nil, 0o600), os.Mkdir(private, 0o700)); err != nil {
		t.Fatal(err)
	}
	photo, fifo := filepath.Join(private, "photo"), filepath.Join(private, "fifo")
	if err := errors.Join(os.WriteFile(photo, []byte("cat"), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{
		"/run/cri.sock":                            "not unix:///path",
		"unix://run/cri.sock":                      "not unix:///path",
		"unix:///run/../cri.sock":                  "not unix:///path",
		"unix:///":                                 "not unix:///path",
		"tcp://127.0.0.1:1":                        "not unix:///path",
		scheme + "/" + strings.Repeat("x", 108):    "more than 107 bytes",
		scheme + filepath.Join(open, "s"):          "open to others (mode 0755)",
		scheme + filepath.Join(file, "s"):          "is no folder",
		scheme + photo:                             "something else than a socket",
		scheme + fifo:                              "something else than a socket",
		scheme + filepath.Join(photo, "deeper/no"): "not a directory",
	} {
		_, err := Listen(t.Context(), endpoint)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", endpoint, err, want)
		}
	}
	if text, err := os.ReadFile(photo); err != nil || string(text) != "cat" {
		t.Errorf("a file was changed: %q %v", text, err)
	}
}
