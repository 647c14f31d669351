package kubeletapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

const (
	// streamIdleTimeout ends a stream nobody uses, as the kubelet does.
	streamIdleTimeout = 4 * time.Hour
	// streamCreationTimeout bounds the wait for a client's streams.
	streamCreationTimeout = 30 * time.Second
)

// running finds the running container of a streaming request.
func (s *server) running(r *http.Request) (*observed.Container, *statusError) {
	run, refused := s.incarnation(r.Context(), r, false)
	if refused != nil {
		return nil, refused
	}
	if !run.Running() {
		return nil, notFound("container not found (%q)", run.ContainerName())
	}
	return run, nil
}

func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	run, refused := s.running(r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	cmd := r.URL.Query()["command"]
	streamer, ok := s.Runtime.(cri.Streamer)
	if !ok {
		resp, err := s.Runtime.Exec(r.Context(), &runtimeapi.ExecRequest{ContainerId: run.Id, Cmd: cmd,
			Tty: opts.TTY, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr})
		proxyTo(w, r, resp.GetUrl(), err)
		return
	}
	remotecommand.ServeExec(w, r, inProcess{streamer}, r.PathValue("pod"), r.PathValue("uid"), run.Id, cmd, opts,
		streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *server) attach(w http.ResponseWriter, r *http.Request) {
	run, refused := s.running(r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	streamer, ok := s.Runtime.(cri.Streamer)
	if !ok {
		resp, err := s.Runtime.Attach(r.Context(), &runtimeapi.AttachRequest{ContainerId: run.Id,
			Tty: opts.TTY, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr})
		proxyTo(w, r, resp.GetUrl(), err)
		return
	}
	remotecommand.ServeAttach(w, r, inProcess{streamer}, r.PathValue("pod"), r.PathValue("uid"), run.Id, opts,
		streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *server) portForward(w http.ResponseWriter, r *http.Request) {
	pod, refused := s.pod(r)
	if refused != nil {
		refuse(w, refused)
		return
	}
	sandbox, refused := s.sandbox(r.Context(), pod.UID)
	if refused != nil {
		refuse(w, refused)
		return
	}
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		refuse(w, badRequest("%v", err))
		return
	}
	streamer, ok := s.Runtime.(cri.Streamer)
	if !ok {
		resp, err := s.Runtime.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox, Port: opts.Ports})
		proxyTo(w, r, resp.GetUrl(), err)
		return
	}
	portforward.ServePortForward(w, r, inProcess{streamer}, sandbox, string(pod.UID), opts,
		streamIdleTimeout, streamCreationTimeout, portforward.SupportedProtocols)
}

func (s *server) sandbox(ctx context.Context, uid types.UID) (string, *statusError) {
	seen, err := observed.Read(ctx, s.Runtime, uid)
	if err != nil {
		return "", &statusError{http.StatusInternalServerError, err.Error()}
	}
	if seen.ReadySandbox() == nil {
		return "", notFound("pod sandbox not found")
	}
	return seen.ReadySandbox().Id, nil
}

// proxyTo hands the connection to the runtime's own streaming server.
func proxyTo(w http.ResponseWriter, r *http.Request, address string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		http.Error(w, fmt.Sprintf("the runtime's streaming address: %v", err), http.StatusInternalServerError)
		return
	}
	proxy.NewUpgradeAwareHandler(u, nil, false, true, responder{}).ServeHTTP(w, r)
}

type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// inProcess carries streams into the runtime. The library's pod name is our
// sandbox id for port-forward, and its container our container id.
type inProcess struct{ cri.Streamer }

func (p inProcess) ExecInContainer(ctx context.Context, _, _, container string, cmd []string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return p.ExecStream(ctx, container, cmd, in, out, err, tty, resize)
}

func (p inProcess) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	return p.AttachStream(ctx, container, in, out, err, tty, resize)
}

func (p inProcess) PortForward(ctx context.Context, sandbox, _ string, port int32, stream io.ReadWriteCloser) error {
	return p.PortForwardStream(ctx, sandbox, port, stream)
}
