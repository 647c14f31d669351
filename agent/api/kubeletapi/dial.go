package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/internal/poddial"
)

const (
	// dialTimeout bounds connecting to a pod.
	dialTimeout = 5 * time.Second
	// ownedTimeout and ownedInterval bound the wait for news of a pod that a server has seen already.
	ownedTimeout  = time.Second
	ownedInterval = 20 * time.Millisecond
)

// dial joins a server with a port of one of this node's pods.
func (s *server) dial(w http.ResponseWriter, r *http.Request) {
	to, err := netip.ParseAddrPort(r.PathValue("address"))
	if err != nil || to.Port() == 0 || r.Header.Get("Upgrade") != poddial.Protocol {
		refuse(w, badRequest("want GET %sADDRESS:PORT with Upgrade: %s", poddial.Path, poddial.Protocol))
		return
	}
	owner := s.awaitOwner(r.Context(), to.Addr())
	if owner == nil {
		refuse(w, &statusError{http.StatusForbidden, fmt.Sprintf("no pod of node %s has the address %s", s.NodeName, to.Addr())})
		return
	}
	leave, refused := s.dials.enter(owner)
	if refused != nil {
		refuse(w, refused)
		return
	}
	defer leave()
	pod, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(r.Context(), "tcp", to.String())
	if err != nil {
		refuse(w, &statusError{http.StatusBadGateway, err.Error()})
		return
	}
	defer pod.Close()
	client, err := takeOver(w)
	if err != nil {
		refuse(w, &statusError{http.StatusInternalServerError, err.Error()})
		return
	}
	defer client.Close()
	defer context.AfterFunc(r.Context(), func() { closeBoth(pod, client) })()
	join(client, pod)
}

// awaitOwner finds the pod of this node that has the address, or nil. A server may know of it a moment earlier than its agent.
func (s *server) awaitOwner(ctx context.Context, address netip.Addr) *corev1.Pod {
	ctx, cancel := context.WithTimeout(ctx, ownedTimeout)
	defer cancel()
	for {
		pods := s.Pods.Pods()
		if i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return owns(p, address) }); i >= 0 {
			return pods[i]
		}
		if !wait.For(ctx, ownedInterval) {
			return nil
		}
	}
}

// owns leaves out the node's own addresses, and those that pods that have ended may have given back.
func owns(p *corev1.Pod, address netip.Addr) bool {
	if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == address.String() })
}

// takeOver answers that the protocol is switched, and returns the connection that the request came by.
func takeOver(w http.ResponseWriter) (net.Conn, error) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return nil, errors.New("this connection cannot be upgraded")
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return nil, err
	}
	if buffered.Reader.Buffered() > 0 { // a server waits for the answer before it says more
		_ = client.Close()
		return nil, errors.New("the client did not wait for the answer")
	}
	if _, err := fmt.Fprintf(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", poddial.Protocol); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

// join copies both ways until both ends have said all, or nobody has said anything for streamIdleTimeout.
func join(a, b net.Conn) {
	idle := time.AfterFunc(streamIdleTimeout, func() { closeBoth(a, b) })
	defer idle.Stop()
	copied := func(to, from net.Conn) {
		if _, err := io.Copy(to, active{from, idle}); err != nil {
			closeBoth(a, b)
			return
		}
		closeWrite(to)
	}
	var both sync.WaitGroup
	both.Go(func() { copied(a, b) })
	both.Go(func() { copied(b, a) })
	both.Wait()
}

func closeBoth(a, b net.Conn) {
	_ = a.Close()
	_ = b.Close()
}

// active tells the timer of each read.
type active struct {
	from io.Reader
	idle *time.Timer
}

func (r active) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.idle.Reset(streamIdleTimeout)
	return n, err
}

// closeWrite passes an end on: TCP and TLS both know it for one direction.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = c.Close()
}
