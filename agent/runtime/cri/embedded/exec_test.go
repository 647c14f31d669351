package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

func program(args ...string) []string { return append([]string{"/setpoint", "workload"}, args...) }

func TestExecSync(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	config := containerConfig("sleep")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 1000}, NoNewPrivs: true,
		Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	id := p.start(config)
	tests := map[string]struct {
		command []string
		stdout  string
		code    int
		text    string
	}{
		"output":    {program("say", "0", "one", "two"), "one\ntwo\n", 0, ""},
		"exit code": {program("say", "42"), "", 42, "exit code 42"},
		"same user, caps": {
			program("look", "uid", "status=CapEff", "status=CapBnd", "status=Seccomp", "status=NoNewPrivs"),
			"uid: 1000 0 [0]\nstatus=CapEff: 0000000000000000\nstatus=CapBnd: 00000000a80425fb\nstatus=Seccomp: 2\nstatus=NoNewPrivs: 1\n",
			0,
			"",
		},
		"same namespaces":  {program("look", "hostname", "read=/proc/1/comm"), "hostname: testexecsync\nread=/proc/1/comm: setpoint\n", 0, ""},
		"not in PATH":      {[]string{"nosuch"}, "", 127, `exec: "nosuch": executable file not found in $PATH`},
		"no such file":     {[]string{"/nosuch"}, "", 127, "no such file"},
		"not a program":    {[]string{"/etc/hosts"}, "", 126, "permission denied"},
		"killed by signal": {program("look", "suicide"), "", 128 + 9, "137"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := r.ExecSync(t.Context(), id, test.command, patience)
			if string(stdout) != test.stdout {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			exit, _ := any(err).(utilexec.CodeExitError) // unwrapped: the streaming server asserts the same way
			if exit.Code != test.code || (err != nil && !strings.Contains(err.Error(), test.text)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestExecSyncTimeoutKillsTheCommand(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	var stdout []byte
	// On a busy machine the command may not even have begun after the shorter times.
	for timeout := 300 * time.Millisecond; len(stdout) == 0; timeout *= 2 {
		var err error
		stdout, _, err = r.ExecSync(t.Context(), id, program("stubborn"), timeout)
		if status.Code(err) != codes.DeadlineExceeded || timeout > patience {
			t.Fatalf("stdout %q, error %v after %s", stdout, err, timeout)
		}
	}
	if string(stdout) != "stubborn\n" {
		t.Errorf("stdout %q", stdout)
	}
	eventually(t, func() error {
		stats, err := r.PodSandboxStats(t.Context(), p.id)
		if err != nil {
			return err
		}
		// The sleeping main process only; each Go process has a few threads.
		out, _, err := r.ExecSync(t.Context(), id, program("look", "list=/proc"), patience)
		if err != nil {
			return err
		}
		if strings.Contains(string(out), "2 3 ") {
			return fmt.Errorf("processes in the container: %s (%d threads)", out, stats.Linux.Process.ProcessCount.Value)
		}
		return nil
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestExecStream(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	var out bytes.Buffer
	if err := r.ExecStream(t.Context(), id, program("cat"), strings.NewReader("through"), nopCloser{&out}, nil, false, nil); err != nil {
		t.Fatal(err)
	}
	if out.String() != "through" {
		t.Errorf("cat returned %q", out.String())
	}
}

func TestExecSaysWhyACommandDidNotStart(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	const why = `failed to exec in container: exec: "nosuch": executable file not found in $PATH`
	var out, errOut, screen bytes.Buffer
	_ = r.ExecStream(t.Context(), id, []string{"nosuch"}, nil, nopCloser{&out}, nopCloser{&errOut}, false, nil)
	_ = r.ExecStream(t.Context(), id, []string{"nosuch"}, nil, nopCloser{&screen}, nil, true, nil)
	_, probed, _ := r.ExecSync(t.Context(), id, []string{"nosuch"}, patience)
	if out.Len() != 0 || errOut.String() != why+"\n" || screen.String() != why+"\r\n" || string(probed) != why+"\n" {
		t.Errorf("stdout %q, stderr %q, screen %q, probed %q", out.String(), errOut.String(), screen.String(), probed)
	}
}

func TestExecStreamTerminal(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	sizes := make(chan remotecommand.TerminalSize, 1)
	sizes <- remotecommand.TerminalSize{Width: 101, Height: 33}
	keys, typist := io.Pipe()
	screen, screenWriter := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := r.ExecStream(t.Context(), id, program("wait-size", "101x33"), keys, screenWriter, nil, true, sizes)
		screenWriter.Close()
		ended <- err
	}()
	shown, _ := io.ReadAll(screen)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	typist.Close()
	if !strings.Contains(string(shown), "/dev/pts/") || !strings.Contains(string(shown), "101x33") {
		t.Errorf("screen: %q", shown)
	}
}

func TestAttach(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	config := containerConfig("cat")
	config.Stdin, config.StdinOnce = true, true
	id := p.start(config)
	var out bytes.Buffer
	if err := r.AttachStream(t.Context(), id, strings.NewReader("typed\n"), nopCloser{&out}, nil, false, nil); err != nil {
		t.Fatal(err)
	}
	if full := p.exit(id); full.ExitCode != 0 || out.String() != "typed\n" || p.log(id) != "typed\n" {
		t.Errorf("exit %d, attached %q, log %q", full.ExitCode, out.String(), p.log(id))
	}
}

// TestAttachWithStdinThatStaysOpen: the end of a client's input ends the client, and not the container.
func TestAttachWithStdinThatStaysOpen(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	config := containerConfig("cat")
	config.Stdin = true
	id := p.start(config)
	for _, typed := range []string{"one\n", "two\n"} {
		ended := make(chan error, 1)
		go func() {
			ended <- r.AttachStream(t.Context(), id, strings.NewReader(typed), nopCloser{io.Discard}, nil, false, nil)
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("the client goes on after the end of its input")
		}
		p.waitLog(id, typed)
	}
	if full := p.status(id); full.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("the container: %v", full.State)
	}
}

func TestPortForward(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	p.waitLog(p.start(containerConfig("echo-server", "127.0.0.1:9000")), "listening")
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- r.PortForwardStream(t.Context(), p.id, 9000, server) }()
	if _, err := client.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "ping" {
		t.Errorf("answer %q, %v", answer, err)
	}
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	err := r.PortForwardStream(t.Context(), p.id, 9001, server)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("closed port: %v", err)
	}
}

func TestExecByURL(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	response, err := r.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: program("say", "0", "x"), Stdout: true})
	if err != nil || !strings.HasPrefix(response.Url, "http://127.0.0.1:") {
		t.Errorf("exec URL: %v %v", response, err)
	}
	if err := r.StopContainer(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	_, err = r.Exec(t.Context(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: program("say", "0", "x"), Stdout: true})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("exec in a stopped container: %v", err)
	}
}

func TestEventsTellOfAnExitAtOnce(t *testing.T) {
	r := newRuntime(t)
	events := make(chan *runtimeapi.ContainerEventResponse, 100)
	ctx, cancel := context.WithCancel(t.Context())
	subscribed, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(subscribed) })
	}()
	<-subscribed
	p := runPod(t, r, nil)
	id := p.start(containerConfig("say", "5"))
	want := []runtimeapi.ContainerEventType{runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, // the sandbox
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT}
	seen := map[runtimeapi.ContainerEventType]int{}
	for range want {
		select {
		case event := <-events:
			seen[event.ContainerEventType]++
			if event.ContainerEventType == want[3] && (event.ContainerId != id || event.ContainersStatuses[0].ExitCode != 5) {
				t.Errorf("stopped event: %v", event)
			}
		case <-time.After(patience):
			t.Fatalf("events so far: %v", seen)
		}
	}
	if seen[want[0]] != 2 || seen[want[1]] != 1 || seen[want[3]] != 1 {
		t.Errorf("events: %v", seen)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("subscription ended with %v", err)
	}
}

func TestExecEndsInTimeWhenItsHelperCannot(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	c, err := r.container(id)
	if err != nil {
		t.Fatal(err)
	}
	freeze(t, c.group.Dirs())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "say", "0"}, 100*time.Millisecond)
		ended <- err
	}()
	select {
	case err := <-ended:
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("exec in a frozen container: %v", err)
		}
	case <-time.After(patience):
		t.Error("exec in a frozen container does not end")
	}
}

// freeze stops all processes of a cgroup, and those that enter it, until the test ends.
func freeze(t *testing.T, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		for file, words := range map[string][2]string{"freezer.state": {"FROZEN", "THAWED"}, "cgroup.freeze": {"1", "0"}} {
			name := filepath.Join(dir, file)
			if os.WriteFile(name, []byte(words[0]), 0) != nil {
				continue // another controller, or the other version
			}
			t.Cleanup(func() {
				if err := os.WriteFile(name, []byte(words[1]), 0); err != nil {
					t.Error(err)
				}
			})
			return
		}
	}
	t.Fatal("no freezer")
}
