package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/kubeconfigs"
	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// RenewAdmin makes a new certificate for the administrator when a third of the life of
// the present one is left, and puts it into the kubeconfigs of the folder. Their
// addresses and whatever else people wrote into them stay. It does nothing else; copies
// of the kubeconfigs elsewhere end with their certificate.
func (c *Cluster) RenewAdmin(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.adminCertificate(); leaf != nil && c.Admin.isFresh(leaf, now) && c.signsAdmin(leaf) {
		return nil
	}
	return c.renewAdmin(now)
}

// renewAdmin is called with mu held.
func (c *Cluster) renewAdmin(now time.Time) error {
	admin, err := c.loadOrIssue(
		c.path(fileAdminCert),
		c.path(fileAdminKey),
		nil,
		now,
		func() (*Identity, error) { return c.CA.IssueAdmin(now) },
	)
	if err != nil {
		return fmt.Errorf("renew the administrator's certificate: %w", err)
	}
	if err := c.renewKubeconfigs(admin); err != nil {
		return err
	}
	c.Admin = admin
	return nil
}

func (c *Cluster) renewKubeconfigs(admin *Identity) error {
	if c.inMemory() {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*.kubeconfig"))
	if err != nil {
		return err
	}
	var failures []error // one file keeps no other back
	for _, file := range files {
		if err := replaceAdmin(file, admin); err != nil {
			failures = append(failures, fmt.Errorf("renew %s: %w", file, err))
		}
	}
	return errors.Join(failures...)
}

// AdminExpires is when the administrator's certificate ends.
func (c *Cluster) AdminExpires() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.adminCertificate(); leaf != nil {
		return leaf.NotAfter
	}
	return time.Time{}
}

// adminCertificate is nil if it cannot be read. The lock is held.
func (c *Cluster) adminCertificate() *x509.Certificate {
	if c.adminRead != c.Admin {
		c.adminRead = c.Admin
		c.adminSigner = nil
		c.adminLeaf, _ = ParseCertificate(c.Admin.CertPEM) // nil counts as one that has ended
	}
	return c.adminLeaf
}

// signsAdmin reports whether the authority that signs now has signed the administrator's certificate. The signature is looked at
// once: this is asked every RenewInterval. The lock is held.
func (c *Cluster) signsAdmin(leaf *x509.Certificate) bool {
	signer := c.CA.signing()
	if c.adminSigner != signer && c.CA.hasSigned(leaf) {
		c.adminSigner = signer
	}
	return c.adminSigner == signer
}

// replaceAdmin gives the administrator's users of a kubeconfig another certificate, and its clusters the authorities of now where they have
// had some of them. What is right already is not written.
func replaceAdmin(path string, admin *Identity) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err = kubeconfigs.Renewed(text, isAdmin, admin.credentials())
	if err != nil || text == nil {
		return err
	}
	return secretfile.Write(path, text, secretfile.Secret)
}

func isAdmin(certificate *x509.Certificate) bool {
	return certificate.Subject.CommonName == adminName && slices.Contains(certificate.Subject.Organization, GroupMasters)
}

func (id *Identity) credentials() kubeconfigs.Credentials {
	return kubeconfigs.Credentials{CertPEM: id.CertPEM, KeyPEM: id.KeyPEM, CAPEM: id.CAPEM}
}

// Kubeconfig returns the administrator's kubeconfig for some servers (kubeconfigs.New): a secret.
func Kubeconfig(admin *Identity, servers []Server) ([]byte, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("kubeconfig: %w: none given", ErrBadServer)
	}
	var named []kubeconfigs.Server
	for _, server := range servers {
		named = append(named, kubeconfigs.Server{Name: server.Name, Endpoint: server.Endpoint})
	}
	return kubeconfigs.New(adminName, admin.credentials(), named)
}

// WriteKubeconfig writes Kubeconfig's result to a file with mode 0600.
func WriteKubeconfig(path string, admin *Identity, servers []Server) error {
	content, err := Kubeconfig(admin, servers)
	if err != nil {
		return err
	}
	return secretfile.Write(path, content, secretfile.Secret)
}
