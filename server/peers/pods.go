package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/poddial"
)

const (
	// podDialTimeout bounds connecting to a pod, its node's agent included.
	podDialTimeout = 30 * time.Second
	// busyRetrySeconds is when a client may come again whose pod has too many connections.
	busyRetrySeconds = 1
)

// Pods connects to pods. A server need not have a route to them, so it is the agent of a pod's node that connects; the
// pods of nodes without such an agent, stock kubelets' and simulated ones, are dialled from here.
type Pods struct {
	Agents *Kubelets
	// Nodes are those of the cluster, as this server knows them.
	Nodes func() ([]*corev1.Node, error)
}

// DialContext connects to address, "ip:port", which may be a pod's or anybody else's.
func (p Pods) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, podDialTimeout)
	defer cancel()
	to, err := netip.ParseAddrPort(address)
	if err != nil { // a name, which no pod is
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	nodes, err := p.Nodes()
	if err != nil {
		return nil, err
	}
	node := agentOf(nodes, to.Addr().Unmap())
	if node == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	conn, err := p.through(ctx, node, to)
	if err != nil {
		return nil, failedDial(node.Name, to, err)
	}
	return conn, nil
}

// failedDial is what a client of a proxy is told.
func failedDial(node string, to netip.AddrPort, err error) error {
	text := fmt.Sprintf("connect to pod %s by the agent of node %s: ", to, node)
	if errors.Is(err, poddial.ErrBusy) {
		return apierrors.NewTooManyRequests(text+err.Error(), busyRetrySeconds)
	}
	return fmt.Errorf("%s%w", text, err)
}

// through asks the node's agent, which proves that it is that node's.
func (p Pods) through(ctx context.Context, node *corev1.Node, to netip.AddrPort) (net.Conn, error) {
	at, _, err := p.Agents.Agent(node)
	if err != nil {
		return nil, err
	}
	transport, err := p.Agents.transport(node.Name)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: kubeletDialTimeout}, Config: transport.TLSClientConfig}
	conn, err := dialer.DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, err
	}
	return poddial.Open(ctx, conn, to)
}

// agentOf is the node in whose range an address is, if its agent connects servers to pods. Of several nodes with one range the oldest
// has it, as on the nodes themselves.
func agentOf(nodes []*corev1.Node, address netip.Addr) *corev1.Node {
	having := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !hasInRange(n, address) })
	if len(having) == 0 {
		return nil
	}
	oldest := slices.MinFunc(having, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	if !slices.Contains(oldest.Status.DeclaredFeatures, poddial.Feature) {
		return nil
	}
	return oldest
}

func hasInRange(n *corev1.Node, address netip.Addr) bool {
	for _, text := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Contains(address) {
			return true
		}
	}
	return false
}
