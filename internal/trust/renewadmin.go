package trust

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// RenewAdmin makes a new certificate for the administrator when a third of the life of
// the present one is left, and puts it into the kubeconfigs of the folder. Their
// addresses and whatever else people wrote into them stay. It does nothing else; copies
// of the kubeconfigs elsewhere end with their certificate.
func (c *Cluster) RenewAdmin(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.adminCertificate(); leaf != nil && farFromEnd(leaf, now) && c.CA.hasSigned(leaf) {
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
	for _, file := range files {
		if err := replaceAdmin(file, admin); err != nil {
			return fmt.Errorf("renew %s: %w", file, err)
		}
	}
	return nil
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
		c.adminLeaf, _ = ParseCertificate(c.Admin.CertPEM) // nil counts as one that has ended
	}
	return c.adminLeaf
}

// replaceAdmin gives the administrator's users of a kubeconfig another certificate, and its clusters the authorities of now where they have
// had some of them. What is right already is not written.
func replaceAdmin(path string, admin *Identity) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config clientcmdv1.Config
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	found := replaceAuthorities(&config, admin.CAPEM)
	for i := range config.AuthInfos {
		if user := &config.AuthInfos[i].AuthInfo; isAdmin(user.ClientCertificateData) && !bytes.Equal(user.ClientCertificateData, admin.CertPEM) {
			user.ClientCertificateData, user.ClientKeyData = admin.CertPEM, admin.KeyPEM
			found = true
		}
	}
	if !found {
		return nil
	}
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	return writeFile(path, text, secretMode)
}

func isAdmin(certPEM []byte) bool {
	certificate, err := ParseCertificate(certPEM)
	return err == nil && certificate.Subject.CommonName == adminName && slices.Contains(certificate.Subject.Organization, GroupMasters)
}
