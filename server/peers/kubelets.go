package peers

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	kubeletDialTimeout = 5 * time.Second
	kubeletIdleTimeout = time.Minute
	// kubeletHeaderBytesMax is how large the header of a node's answer may be.
	kubeletHeaderBytesMax = 64 << 10
)

var (
	errNoAddress = errors.New("the node has registered no internal address")
	errNoPort    = errors.New("the node has registered no port for its agent")
	errNoAgent   = errors.New("it is simulated, its pods run nothing")
)

// Kubelets dials the agents of nodes. The certificate must be the node's own, of the
// authority for what nodes serve with, so an address that a node lied about leads nowhere.
type Kubelets struct {
	identity   *trust.Live
	serving    *trust.CA
	judge      *revocation.Judge
	mu         sync.Mutex
	transports map[string]*http.Transport
	// moment is that of the authorities that transports believe.
	moment any
}

// NewKubelets dials as identity. serving is the authority for what nodes serve with. Whom the judge shuts out is not reached, and what was
// opened to him ends; nil: nobody is.
func NewKubelets(identity *trust.Live, serving *trust.CA, judge *revocation.Judge) *Kubelets {
	return &Kubelets{identity: identity, serving: serving, judge: judge, transports: map[string]*http.Transport{}}
}

// Agent implements rest.Kubelets.
func (k *Kubelets) Agent(node *corev1.Node) (*url.URL, http.RoundTripper, error) {
	address := internalAddress(node)
	if address == "" {
		return nil, nil, errNoAddress
	}
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if _, pretended := node.Labels[simulated.Label]; pretended && port == 0 {
		return nil, nil, errNoAgent
	}
	if port == 0 {
		return nil, nil, errNoPort
	}
	transport, err := k.transport(node.Name)
	if err != nil {
		return nil, nil, err
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(int(port)))}, transport, nil
}

// internalAddress is the first one, but loopback of this machine if the node says so: others do not reach its agent.
func internalAddress(node *corev1.Node) (first string) {
	for _, a := range node.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.IsLoopback() {
			return a.Address
		}
		first = cmp.Or(first, a.Address)
	}
	return first
}

// transport is kept for each node. Exec upgrades connections, which HTTP/2 cannot.
func (k *Kubelets) transport(node string) (*http.Transport, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.serving.Moment(); k.moment != now {
		for _, t := range k.transports {
			t.CloseIdleConnections() // the judge ends the others when their authority is dropped
		}
		clear(k.transports)
		k.moment = now
	}
	if t, ok := k.transports[node]; ok {
		return t, nil
	}
	config, err := k.identity.NodeClientConfig(node, k.serving)
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{"http/1.1"}
	t := &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: kubeletDialTimeout, IdleConnTimeout: kubeletIdleTimeout,
		DialContext:            (&net.Dialer{Timeout: kubeletDialTimeout}).DialContext,
		MaxResponseHeaderBytes: kubeletHeaderBytesMax, DisableCompression: true,
	}
	k.judge.GuardTransport(t, kubeletDialTimeout)
	k.transports[node] = t
	return t, nil
}
