package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Files of an agent's pki folder.
const (
	fileNodeCert = "node.crt"
	fileNodeKey  = "node.key"
)

// Node is what an agent holds after it has joined.
type Node struct {
	Identity *Identity
	// GossipKey encrypts gossip: 32 bytes.
	GossipKey []byte
}

// NewNodeRequest makes a key and the certificate request that SignNode signs, both in
// PEM. The key never leaves the machine.
func NewNodeRequest(node string) (requestPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("key of node %s: %w", node, err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: NodeUser(node), Organization: []string{GroupNodes}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate request of node %s: %w", node, err)
	}
	keyPEM, err = encodeKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), keyPEM, err
}

// Save writes what an agent holds to <dir>/pki. The certificate comes last: if it is
// there, so is the rest.
func (n *Node) Save(dir string) error {
	folder := filepath.Join(dir, folderPKI)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{fileCACert, n.Identity.CAPEM},
		{fileGossipKey, []byte(base64.StdEncoding.EncodeToString(n.GossipKey) + "\n")},
		{fileNodeKey, n.Identity.KeyPEM},
		{fileNodeCert, n.Identity.CertPEM},
	} {
		if err := writeFile(filepath.Join(folder, file.name), file.content, secretMode); err != nil {
			return err
		}
	}
	return nil
}

// LoadNode reads what Save wrote. It is an error that wraps fs.ErrNotExist if there is nothing.
func LoadNode(dir string) (*Node, error) {
	folder := filepath.Join(dir, folderPKI)
	content := map[string][]byte{}
	for _, name := range []string{fileNodeCert, fileNodeKey, fileCACert, fileGossipKey} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("load node: %w", err)
		}
		content[name] = text
	}
	key, err := ParseGossipKey(string(content[fileGossipKey]))
	if err != nil {
		return nil, fmt.Errorf("load node: %w", err)
	}
	return &Node{GossipKey: key, Identity: &Identity{
		CertPEM: content[fileNodeCert], KeyPEM: content[fileNodeKey], CAPEM: content[fileCACert],
	}}, nil
}

// Fits reports whether an identity can still be used for a node: certificate and key
// belong together and to the authority, it bears the node's name, and has a third of its life left.
func (id *Identity) Fits(node string, now time.Time) bool {
	if _, _, err := id.config(); err != nil {
		return false
	}
	certificate, err := ParseCertificate(id.CertPEM)
	if err != nil || certificate.Subject.CommonName != NodeUser(node) {
		return false
	}
	authority, err := ParseCertificate(id.CAPEM)
	return err == nil && certificate.CheckSignatureFrom(authority) == nil && farFromEnd(certificate, now)
}

func farFromEnd(certificate *x509.Certificate, now time.Time) bool {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.Add(life / 3).Before(certificate.NotAfter)
}
