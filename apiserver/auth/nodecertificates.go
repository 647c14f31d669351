package auth

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// nodeCertificatesMax is of how many nodes the end of the certificate is remembered; beyond it another one waits until one has gone.
const nodeCertificatesMax = 10_000

// nodeCertificates remembers when the certificates end that nodes have shown since this server started.
type nodeCertificates struct {
	mu   sync.RWMutex
	ends map[string]time.Time
}

// seen keeps the later end: for a while a node has connections of its former certificate, too.
func (c *nodeCertificates) seen(node string, connection *tls.ConnectionState) {
	if connection == nil || len(connection.PeerCertificates) == 0 {
		return
	}
	end := connection.PeerCertificates[0].NotAfter
	c.mu.RLock()
	known, remembered := c.ends[node]
	full := len(c.ends) >= nodeCertificatesMax
	c.mu.RUnlock()
	if !end.After(known) || full && !remembered {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = map[string]time.Time{}
	}
	c.ends[node] = end
}

// Expiries are when the certificates of nodes end, as far as they have shown them to this server. What was seen of nodes without a Node is
// forgotten.
func (k *NodeKeys) Expiries() (all []trust.Expiry) {
	k.certificates.mu.Lock()
	defer k.certificates.mu.Unlock()
	for node, end := range k.certificates.ends {
		if known, err := k.of(context.Background(), node, "0"); err == nil && known == noNode {
			delete(k.certificates.ends, node)
			continue
		}
		all = append(all, trust.Expiry{Kind: trust.KindNode, Name: node, Expires: end})
	}
	return all
}
