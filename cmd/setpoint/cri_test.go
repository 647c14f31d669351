package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	criclient "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"
)

const demoImage = "setpoint.local/demo:v1"

// startCRI is one at a time, and not beside a start-dev.
func startCRI(ts *testscript.TestScript, neg bool, args []string) {
	c := ts.Value(clusterKey{}).(*cluster)
	if neg || c.cmd != nil {
		ts.Fatalf("start-cri: not with !, and one at a time")
	}
	work := ts.Getenv("WORK")
	endpoint := "unix://" + filepath.Join(work, "run", "cri.sock")
	c.output.Reset()
	ts.Check(c.start(ts, append([]string{"cri", "--listen", endpoint, "--data-dir", filepath.Join(work, "data")}, args...)))
	ts.Defer(func() { c.end(syscall.SIGKILL) })
	if !c.awaitOutput("ready on " + endpoint) {
		ts.Fatalf("start-cri: not ready:\n%s", c.output.String())
	}
	ts.Setenv("CRI", endpoint)
}

// criPod is what the steps of a script share: plain calls of upstream's client.
type criPod struct {
	runtime        internalapi.RuntimeService
	images         internalapi.ImageManagerService
	config         *runtimeapi.PodSandboxConfig
	podID, id, log string
}

type criPodKey struct{}

var criSteps = map[string]func(context.Context, *criPod) (string, error){
	"run": runCRIPod, "exec": execCRI, "stream": streamCRI, "status": statusCRI, "log": logCRI, "remove": removeCRIPod,
}

// criStep prints what the step says.
func criStep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || criSteps[args[0]] == nil {
		ts.Fatalf("usage: cri run|exec|stream|status|log|remove")
	}
	pod, _ := ts.Value(criPodKey{}).(*criPod)
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var err error
	pod.runtime, err = criclient.NewRemoteRuntimeService(ctx, ts.Getenv("CRI"), readyTimeout, nil, false)
	ts.Check(err)
	defer pod.runtime.Close(ctx)
	pod.images, err = criclient.NewRemoteImageService(ctx, ts.Getenv("CRI"), readyTimeout, nil, false)
	ts.Check(err)
	defer pod.images.Close(ctx)
	if pod.log == "" {
		pod.log = filepath.Join(ts.Getenv("WORK"), "logs")
	}
	said, err := criSteps[args[0]](ctx, pod)
	if err != nil {
		ts.Fatalf("cri %s: %v", args[0], err)
	}
	fmt.Fprintln(ts.Stdout(), said)
}

func runCRIPod(ctx context.Context, p *criPod) (string, error) {
	p.config = &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Uid: "uid", Namespace: "default"}, Hostname: "pod", LogDirectory: p.log,
	}
	if _, err := p.images.PullImage(ctx, &runtimeapi.ImageSpec{Image: demoImage}, nil, p.config); err != nil {
		return "", err
	}
	var err error
	if p.podID, err = p.runtime.RunPodSandbox(ctx, p.config, ""); err != nil {
		return "", err
	}
	p.id, err = p.runtime.CreateContainer(ctx, p.podID, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: demoImage}, LogPath: "main.log",
	}, p.config)
	if err != nil {
		return "", err
	}
	return "started", p.runtime.StartContainer(ctx, p.id)
}

// execCRI runs one command that does well and one that is not there.
func execCRI(ctx context.Context, p *criPod) (string, error) {
	stdout, _, err := p.runtime.ExecSync(ctx, p.id, []string{"/setpoint", "version"}, readyTimeout)
	if err != nil {
		return "", err
	}
	_, _, err = p.runtime.ExecSync(ctx, p.id, []string{"/nothing"}, readyTimeout)
	failed, ok := errors.AsType[utilexec.CodeExitError](err)
	if !ok {
		return "", fmt.Errorf("a command that is not there: %w", err)
	}
	return fmt.Sprintf("%s\nexit %d", stdout, failed.Code), nil
}

// streamCRI asks the streaming server for a command without a protocol, twice: the URL's token is used up by the first.
func streamCRI(ctx context.Context, p *criPod) (string, error) {
	answer, err := p.runtime.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: p.id, Cmd: []string{"/setpoint", "version"}, Stdout: true})
	if err != nil {
		return "", err
	}
	said := answer.Url
	for range 2 {
		answered, err := post(ctx, answer.Url)
		if err != nil {
			return "", err
		}
		said += " " + answered
	}
	return said, nil
}

// post dials by itself, because the script's network is that of its thread.
func post(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", req.URL.Host)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return "", err
	}
	return response.Status, response.Body.Close()
}

func statusCRI(ctx context.Context, p *criPod) (string, error) {
	pods, err := p.runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return "", err
	}
	if len(pods) == 0 {
		return "no pods", nil
	}
	answer, err := p.runtime.ContainerStatus(ctx, p.id, false)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d pods %s", len(pods), answer.Status.State), nil
}

// logCRI waits for the program's first line.
func logCRI(_ context.Context, p *criPod) (string, error) {
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(pollInterval) {
		text, err := os.ReadFile(filepath.Join(p.log, "main.log"))
		if err == nil && strings.Contains(string(text), "\n") {
			return string(text), nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no log: %w", err)
		}
	}
}

func removeCRIPod(ctx context.Context, p *criPod) (string, error) {
	const graceSeconds = 10
	if err := p.runtime.StopContainer(ctx, p.id, graceSeconds); err != nil {
		return "", err
	}
	answer, err := p.runtime.ContainerStatus(ctx, p.id, false)
	if err != nil {
		return "", err
	}
	err = errors.Join(p.runtime.RemoveContainer(ctx, p.id), p.runtime.StopPodSandbox(ctx, p.podID), p.runtime.RemovePodSandbox(ctx, p.podID))
	return fmt.Sprintf("%s %d", answer.Status.State, answer.Status.ExitCode), err
}
