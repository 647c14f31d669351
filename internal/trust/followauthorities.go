package trust

import (
	"bytes"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// followAuthorities is RenewAdmin, and makes the kubeconfigs of the folder believe the authorities of now. Where encryption.yaml is
// missing, what it would say is written down: it follows from the first authority.
func (c *Cluster) followAuthorities(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inMemory() {
		if _, err := secretfile.ReadOrMake(c.EncryptionFile(), secretfile.Secret, c.newEncryptionConfig); err != nil {
			return err
		}
	}
	leaf := c.adminCertificate()
	if c.inMemory() && leaf != nil && c.CA.hasSigned(leaf) {
		admin := *c.Admin
		admin.CAPEM, admin.BehindPEM = c.CA.CertPEM(), c.CA.behindPEM()
		c.Admin = &admin
		return nil
	}
	return c.renewAdmin(now)
}

// kept is what a server without a folder goes on with: its own certificate if the authority that signs now has signed it, or another.
func (c *Cluster) kept(own, another *Identity) *Identity {
	certificate, err := ParseCertificate(own.CertPEM)
	if err != nil || !c.CA.hasSigned(certificate) {
		return another
	}
	id := *own
	id.CAPEM, id.BehindPEM = c.CA.CertPEM(), c.CA.behindPEM()
	return &id
}

// equal tells nothing of the crossed certificates, which are others each time.
func (id *Identity) equal(other *Identity) bool {
	return bytes.Equal(id.CertPEM, other.CertPEM) && bytes.Equal(id.KeyPEM, other.KeyPEM) && bytes.Equal(id.CAPEM, other.CAPEM)
}

// SignerFirst are the authorities in the order in which an agent keeps them: that of its own certificate first, which earlier releases
// believe alone. signs reports whether it is the first one of those that were told too.
func SignerFirst(own *Identity, told []byte) (caPEM []byte, signs bool, err error) {
	authorities, err := ParseCertificates(told)
	if err != nil {
		return nil, false, err
	}
	signer := own.signer()
	if signer == nil {
		return nil, false, fmt.Errorf("%w: none of the authorities that are believed has signed the certificate", ErrBadPEM)
	}
	caPEM = encodeCert(signer.Raw)
	for _, a := range authorities {
		if !a.Equal(signer) {
			caPEM = append(caPEM, encodeCert(a.Raw)...)
		}
	}
	return caPEM, authorities[0].Equal(signer), nil
}

// Believing is the node with other authorities.
func (n *Node) Believing(caPEM []byte) *Node {
	next := *n
	own := *n.Identity
	own.CAPEM = caPEM
	next.Identity = &own
	if n.Serving != nil {
		serving := *n.Serving
		serving.CAPEM = caPEM
		next.Serving = &serving
	}
	return &next
}

// AuthorityKeyIDs are what the certificates of the identity's authorities call their keys.
func (id *Identity) AuthorityKeyIDs() (all []string) {
	authorities, _ := ParseCertificates(id.CAPEM) // without one it believes nobody
	for _, a := range authorities {
		all = append(all, string(a.SubjectKeyId))
	}
	return all
}
