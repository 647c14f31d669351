package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/poddial"
)

// dialling is a node whose only pod listens on 127.0.0.1: it answers what it was sent, in capitals, once it was told the end.
func dialling(t *testing.T, change func(*corev1.Pod)) (s *server, agent string, pod netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				said, _ := io.ReadAll(c)
				_, _ = io.WriteString(c, strings.ToUpper(string(said)))
			}()
		}
	}()
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}}
	change(p)
	s = newServer(Config{NodeName: "n1", Pods: onePod{p}})
	web := httptest.NewServer(s.handler())
	t.Cleanup(web.Close)
	return s, web.Listener.Addr().String(), l.Addr().(*net.TCPAddr).AddrPort()
}

func open(ctx context.Context, t *testing.T, agent string, to netip.AddrPort) (net.Conn, error) {
	t.Helper()
	conn, err := net.Dial("tcp", agent)
	if err != nil {
		t.Fatal(err)
	}
	return poddial.Open(ctx, conn, to)
}

func TestServersAreConnectedToPods(t *testing.T) {
	_, agent, pod := dialling(t, func(*corev1.Pod) {})
	conn, err := open(t.Context(), t, agent, pod)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := strings.Repeat("many words ", 100_000)
	go func() {
		_, _ = io.WriteString(conn, said)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); err != nil || string(got) != strings.ToUpper(said) {
		t.Errorf("%d bytes came back, %v; want %d", len(got), err, len(said))
	}
}

func TestServersAreConnectedToPodsOfTheNodeOnly(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"another address": func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "127.0.0.2" },
		"of the node":     func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"of an ended pod": func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		_, agent, pod := dialling(t, change)
		if conn, err := open(t.Context(), t, agent, pod); !errors.Is(err, poddial.ErrRefused) || !strings.Contains(err.Error(), "no pod of node n1") {
			t.Errorf("%s: %v, %v", name, conn, err)
		}
	}
}

func TestPodsThatCannotBeReached(t *testing.T) {
	_, agent, pod := dialling(t, func(*corev1.Pod) {})
	if _, err := open(t.Context(), t, agent, netip.AddrPortFrom(pod.Addr(), 0)); !errors.Is(err, poddial.ErrRefused) {
		t.Errorf("port 0: %v", err)
	}
	if _, err := open(t.Context(), t, agent, netip.AddrPortFrom(pod.Addr(), 1)); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := open(ended, t, agent, pod); err == nil {
		t.Error("a call that has ended was connected")
	}
}
