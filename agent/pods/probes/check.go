package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilexec "k8s.io/utils/exec"
)

// outputMaxBytes bounds what a probe's answer may add to an event.
const outputMaxBytes = 10 << 10

// Execer is the part of the CRI that exec probes need.
type Execer interface {
	ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error)
}

// result of one probe.
type result struct {
	ok               bool
	message, warning string
}

func failed(format string, args ...any) result { return result{message: fmt.Sprintf(format, args...)} }

// check runs the probe once.
func (p *prober) check(ctx context.Context, probe *corev1.Probe, timeout time.Duration) result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case probe.Exec != nil:
		return p.exec(ctx, probe.Exec.Command, timeout)
	case probe.HTTPGet != nil:
		return p.http(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		return p.tcp(ctx, probe.TCPSocket)
	case probe.GRPC != nil:
		return p.grpc(ctx, probe.GRPC, timeout)
	default:
		return failed("missing probe handler for %s:%s", p.Pod.Name, p.Container.Name)
	}
}

// exec counts every error as a failure: a command that cannot run does not
// prove that the container is well.
func (p *prober) exec(ctx context.Context, cmd []string, timeout time.Duration) result {
	stdout, stderr, err := p.cfg.Exec.ExecSync(ctx, p.ID, cmd, timeout)
	out := append(stdout, stderr...)
	out = out[:min(len(out), outputMaxBytes)]
	if err == nil {
		return result{ok: true, message: string(out)}
	}
	if exit, ok := errors.AsType[utilexec.ExitError](err); ok {
		if exit.ExitStatus() == 0 {
			return result{ok: true, message: string(out)}
		}
		return failed("%s", out)
	}
	if ctx.Err() != nil {
		return failed("command timed out: %q timed out after %v", cmd, timeout)
	}
	return failed("%v", err)
}

func (p *prober) tcp(ctx context.Context, t *corev1.TCPSocketAction) result {
	port, err := Port(t.Port, p.Container)
	if err != nil {
		return failed("%v", err)
	}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(orHost(t.Host, p.IP), strconv.Itoa(port)))
	if err != nil {
		return failed("%v", err)
	}
	conn.Close()
	return result{ok: true}
}

func (p *prober) grpc(ctx context.Context, g *corev1.GRPCAction, timeout time.Duration) result {
	address := net.JoinHostPort(p.IP, strconv.Itoa(int(g.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(p.cfg.UserAgent), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		return failed("error: %v", err)
	}
	defer conn.Close()
	service := ""
	if g.Service != nil {
		service = *g.Service
	}
	resp, err := grpc_health_v1.NewHealthClient(conn).
		Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
	switch {
	case ctx.Err() != nil:
		return failed("timeout: failed to connect service %q within %v: %v", address, timeout, ctx.Err())
	case err != nil:
		return failed("error: health rpc probe failed: %v", err)
	case resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return failed("service unhealthy (responded with %q)", resp.GetStatus().String())
	}
	return result{ok: true}
}

// Port is the number a probe or hook means, which may be a port's name.
func Port(port intstr.IntOrString, c *corev1.Container) (int, error) {
	n := port.IntValue()
	if port.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				n = int(p.ContainerPort)
			}
		}
	}
	if n <= 0 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", port.String())
	}
	return n, nil
}

func orHost(host, ip string) string {
	if host != "" {
		return host
	}
	return ip
}

// dialer closes probe connections after a second of linger, so that frequent
// probes do not fill the node's table with sockets in TIME_WAIT.
var dialer = net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
	})
}}
