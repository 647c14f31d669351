package auth

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// nodeCertificatesMax is of how many nodes the end of the certificate is remembered; beyond it another one waits until one has gone.
const nodeCertificatesMax = 10_000

// nodeCertificates remembers when the certificates end that nodes have shown since this server started. Each request of a node notes
// it, so nothing here waits for anybody.
type nodeCertificates struct {
	ends  sync.Map // the name of a node to an *atomic.Int64, seconds since 1970
	nodes atomic.Int64
}

// seen keeps the later end: for a while a node has connections of its former certificate, too.
func (c *nodeCertificates) seen(node string, connection *tls.ConnectionState) {
	if connection == nil || len(connection.PeerCertificates) == 0 {
		return
	}
	end := connection.PeerCertificates[0].NotAfter.Unix()
	known := c.of(node)
	if known == nil {
		return
	}
	for {
		was := known.Load()
		if end <= was || known.CompareAndSwap(was, end) {
			return
		}
	}
}

// of is the end of a node's certificate, 0 at first; nil: too many are remembered.
func (c *nodeCertificates) of(node string) *atomic.Int64 {
	if known, ok := c.ends.Load(node); ok {
		return known.(*atomic.Int64)
	}
	if c.nodes.Add(1) > nodeCertificatesMax {
		c.nodes.Add(-1)
		return nil
	}
	known, ok := c.ends.LoadOrStore(node, new(atomic.Int64))
	if ok {
		c.nodes.Add(-1)
	}
	return known.(*atomic.Int64)
}

func (c *nodeCertificates) forget(node string) {
	if _, ok := c.ends.LoadAndDelete(node); ok {
		c.nodes.Add(-1)
	}
}

// Expiries are when the certificates of nodes end, as far as they have shown them to this server. What was seen of nodes without a Node is
// forgotten.
func (k *NodeKeys) Expiries() (all []trust.Expiry) {
	k.certificates.ends.Range(func(name, known any) bool {
		node, end := name.(string), known.(*atomic.Int64).Load()
		if key, err := k.of(context.Background(), node, "0"); err == nil && key == noNode {
			k.certificates.forget(node)
		} else if end != 0 {
			all = append(all, trust.Expiry{Kind: trust.KindNode, Name: node, Expires: time.Unix(end, 0)})
		}
		return true
	})
	return all
}

// Ends is when the newest certificate ends that a node has shown to this server, the zero time if it has shown none.
func (k *NodeKeys) Ends(node string) time.Time {
	known, ok := k.certificates.ends.Load(node)
	if !ok {
		return time.Time{}
	}
	end := known.(*atomic.Int64).Load()
	if end == 0 {
		return time.Time{}
	}
	return time.Unix(end, 0)
}
