package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// Files of an agent's pki folder.
const (
	fileNodeCert    = "node.crt"
	fileNodeKey     = "node.key"
	fileServingCert = "serving.crt"
)

// Node is what an agent holds after it has joined.
type Node struct {
	// Identity is the node's when it calls servers.
	Identity *Identity
	// Serving is the node's when servers call it: the same key, a certificate of the
	// authority NodeServing, and the cluster's authority, whose servers may call. Nil if
	// the node joined before there was such an authority.
	Serving *Identity
	// GossipKeys encrypt gossip. Once they are saved they save themselves.
	GossipKeys *GossipRing
}

// NodeKey returns the private key of the agent in PEM: the one in <dir>/pki, or a new
// one that is saved there. The key never leaves the machine, and is kept for as long as
// the folder: by it the cluster knows that a node that joins again is the same.
func NodeKey(dir string) ([]byte, error) {
	folder := filepath.Join(dir, folderPKI)
	if err := os.MkdirAll(folder, secretfile.Folder); err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	keyPEM, err := secretfile.ReadOrMake(filepath.Join(folder, fileNodeKey), secretfile.Secret, NewKey)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	return keyPEM, nil
}

// Save writes what an agent holds to <dir>/pki. The client certificate comes last: if it
// is there, so is the rest.
func (n *Node) Save(dir string) error {
	folder := filepath.Join(dir, folderPKI)
	if err := os.MkdirAll(folder, secretfile.Folder); err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	type content struct {
		name string
		text []byte
	}
	files := []content{
		{fileCACert, n.Identity.CAPEM},
		{fileNodeKey, n.Identity.KeyPEM},
	}
	if n.Serving != nil {
		files = append(files, content{fileServingCert, n.Serving.CertPEM})
	}
	if n.GossipKeys.file == "" { // those that were loaded are there
		if err := n.GossipKeys.saveIn(folder); err != nil {
			return err
		}
	}
	for _, file := range append(files, content{fileNodeCert, n.Identity.CertPEM}) {
		if err := secretfile.Write(filepath.Join(folder, file.name), file.text, secretfile.Secret); err != nil {
			return err
		}
	}
	return nil
}

// LoadNode reads what Save wrote. It is an error that wraps fs.ErrNotExist if there is nothing.
func LoadNode(dir string) (*Node, error) {
	folder := filepath.Join(dir, folderPKI)
	content := map[string][]byte{}
	for _, name := range []string{fileNodeCert, fileNodeKey, fileCACert, fileServingCert} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if name == fileServingCert && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("load node: %w", err)
		}
		content[name] = text
	}
	keys, err := loadGossipRing(folder)
	if err != nil {
		return nil, fmt.Errorf("load node: %w", err)
	}
	return nodeOf(content[fileNodeCert], content[fileServingCert], content[fileNodeKey], content[fileCACert], keys), nil
}

// NewNode is a node with one key; servingPEM may be empty.
func NewNode(certPEM, servingPEM, keyPEM, caPEM []byte, gossip GossipKeys) (*Node, error) {
	keys, err := gossipRingOf(gossip, "")
	if err != nil {
		return nil, err
	}
	return nodeOf(certPEM, servingPEM, keyPEM, caPEM, keys), nil
}

func nodeOf(certPEM, servingPEM, keyPEM, caPEM []byte, keys *GossipRing) *Node {
	n := &Node{GossipKeys: keys, Identity: &Identity{CertPEM: certPEM, KeyPEM: keyPEM, CAPEM: caPEM}}
	if len(servingPEM) > 0 {
		n.Serving = &Identity{CertPEM: servingPEM, KeyPEM: keyPEM, CAPEM: caPEM}
	}
	return n
}

// Valid reports whether servers take a node for itself now: certificate and key belong
// together and to the authority, it bears the node's name, and has not ended.
func (n *Node) Valid(node string, now time.Time) bool {
	if _, _, err := n.Identity.config(); err != nil {
		return false
	}
	certificate, err := ParseCertificate(n.Identity.CertPEM)
	if err != nil || certificate.Subject.CommonName != NodeUser(node) || now.After(certificate.NotAfter) {
		return false
	}
	return n.Identity.signer() != nil
}

// NeedsRenewal reports whether one of the node's certificates is missing or needs it (Identity.NeedsRenewal).
func (n *Node) NeedsRenewal(now time.Time) bool {
	return n.Serving == nil || n.Identity.NeedsRenewal(now) || n.Serving.NeedsRenewal(now)
}
