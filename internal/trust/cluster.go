package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
	"github.com/setpoint-io/setpoint/internal/trust/storagekeys"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// Files of a cluster's folder. Besides them pki/ holds <server>.crt and <server>.key,
// and the folder itself one <server>.kubeconfig for each server.
const (
	folderPKI       = "pki"
	fileCACert      = "ca.crt"
	fileCAKey       = "ca.key"
	fileCARing      = "ca.ring"
	fileAdminCert   = "admin.crt"
	fileAdminKey    = "admin.key"
	fileGossipKey   = "gossip.key"
	fileGossipRing  = "gossip.ring"
	fileNodeToken   = "node.token"
	fileAccountKey  = "sa.key"
	AdminKubeconfig = "admin.kubeconfig"
)

// Cluster is the trust material of a cluster, as held by its servers.
type Cluster struct {
	CA *CA
	// GossipKeys encrypt gossip.
	GossipKeys *GossipRing
	// NodeToken lets agents join for TokenLife after the first start of the cluster. It
	// is the zero value if its file was deleted, or is of an authority that was dropped.
	NodeToken tokens.Token
	// AccountKeys sign the tokens of service accounts, on every server.
	AccountKeys *Ring[AccountKey]
	// Admin may do everything. RenewAdmin replaces it.
	Admin *Identity

	dir string
	// mu keeps one RenewAdmin from another, and guards encryption. adminLeaf is the certificate of adminRead, and adminSigner
	// the authority that is known to have signed it.
	mu          sync.Mutex
	adminRead   *Identity
	adminLeaf   *x509.Certificate
	adminSigner *Authority
	// encryption is made when somebody asks for it.
	encryption *storagekeys.Keys
}

// InitCluster makes or completes the trust material of a cluster in dir: what exists and
// has more than a third of its life left is kept, so calling it again is harmless and
// renews. It writes one certificate for each server, and the administrator's kubeconfigs.
func InitCluster(dir string, servers []Server, now time.Time) (*Cluster, error) {
	if err := os.MkdirAll(filepath.Join(dir, folderPKI), secretfile.Folder); err != nil {
		return nil, fmt.Errorf("init cluster: %w", err)
	}
	ca, err := loadOrMakeCA(filepath.Join(dir, folderPKI), now)
	if err != nil {
		return nil, fmt.Errorf("init cluster: %w", err)
	}
	cluster := &Cluster{CA: ca, dir: dir}
	if err := cluster.complete(servers, now); err != nil {
		return nil, fmt.Errorf("init cluster: %w", err)
	}
	return cluster, nil
}

// NewCluster makes the trust material of a cluster that no folder keeps: it ends with the process.
func NewCluster(now time.Time) (*Cluster, error) {
	ca, err := NewCA(now)
	if err != nil {
		return nil, fmt.Errorf("new cluster: %w", err)
	}
	c := &Cluster{CA: ca}
	if err := c.makeSecrets(); err != nil {
		return nil, fmt.Errorf("new cluster: %w", err)
	}
	if c.Admin, err = ca.IssueAdmin(now); err != nil {
		return nil, fmt.Errorf("new cluster: %w", err)
	}
	return c, nil
}

// Copied is the material of a cluster that no folder keeps, for another server: with rings of its own, which begin with the keys of now.
func (c *Cluster) Copied() *Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Cluster{
		CA: c.CA.copied(), GossipKeys: c.GossipKeys.copied(), NodeToken: c.NodeToken, AccountKeys: c.AccountKeys.copied(), Admin: c.Admin,
		encryption: c.encryption.Copied(),
	}
}

func (c *Cluster) makeSecrets() (err error) {
	key, err := newGossipKey()
	if err != nil {
		return err
	}
	keys, err := parseGossipKeys(key)
	if err != nil {
		return err
	}
	if c.GossipKeys, err = gossipRingOf(keys, ""); err != nil {
		return err
	}
	if c.NodeToken, err = tokens.New(tokens.RoleNode, c.CA.Pin()); err != nil {
		return err
	}
	text, err := NewAccountKey()
	if err != nil {
		return err
	}
	c.AccountKeys, err = ringOf(accountKeyForm, "", text)
	return err
}

// inMemory reports that no folder keeps the material.
func (c *Cluster) inMemory() bool { return c.dir == "" }

func (c *Cluster) complete(servers []Server, now time.Time) error {
	if err := c.loadSecrets(true); err != nil {
		return err
	}
	if _, err := secretfile.ReadOrMake(c.EncryptionFile(), secretfile.Secret, c.newEncryptionConfig); err != nil {
		return err
	}
	return c.issue(servers, now)
}

// issue makes what follows from the keys: certificates and kubeconfigs.
func (c *Cluster) issue(servers []Server, now time.Time) (err error) {
	for _, server := range servers {
		if _, err := c.Server(server, now); err != nil {
			return err
		}
	}
	if c.Admin, err = c.loadOrIssue(c.path(fileAdminCert), c.path(fileAdminKey), nil, now,
		func() (*Identity, error) { return c.CA.IssueAdmin(now) }); err != nil {
		return err
	}
	return c.writeKubeconfigs(servers)
}

// LoadCluster reads the trust material that InitCluster wrote; it changes nothing.
func LoadCluster(dir string) (*Cluster, error) {
	c := &Cluster{dir: dir}
	var err error
	if c.CA, err = loadCA(filepath.Join(dir, folderPKI)); err != nil {
		return nil, fmt.Errorf("load cluster %s: %w", dir, err)
	}
	if err := c.loadSecrets(false); err != nil {
		return nil, fmt.Errorf("load cluster: %w", err)
	}
	if c.Admin, err = c.readIdentity(c.path(fileAdminCert), c.path(fileAdminKey)); err != nil {
		return nil, fmt.Errorf("load cluster: %w", err)
	}
	return c, nil
}

// Server returns the identity of a server, issuing it when it is missing, near its end, or
// lacks one of the server's names.
func (c *Cluster) Server(server Server, now time.Time) (*Identity, error) {
	if err := server.validate(); err != nil {
		return nil, err
	}
	return c.loadOrIssue(c.path(server.Name+".crt"), c.path(server.Name+".key"), server.Names(), now,
		func() (*Identity, error) { return c.CA.IssueServer(server, now) })
}

// anotherServer is Server, which issues it in any case.
func (c *Cluster) anotherServer(server Server, now time.Time) (*Identity, error) {
	id, err := c.CA.IssueServer(server, now)
	if err != nil || c.inMemory() {
		return id, err
	}
	return id, saveIdentity(id, c.path(server.Name+".crt"), c.path(server.Name+".key"))
}

// LoadServer returns the identity of a server as it is on disk.
func (c *Cluster) LoadServer(name string) (*Identity, error) {
	id, err := c.readIdentity(c.path(name+".crt"), c.path(name+".key"))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoServer, name, err)
	}
	return id, nil
}

func (c *Cluster) path(file string) string { return filepath.Join(c.dir, folderPKI, file) }

func (c *Cluster) writeKubeconfigs(servers []Server) error {
	if len(servers) == 0 {
		return nil
	}
	for _, server := range servers {
		if err := WriteKubeconfig(filepath.Join(c.dir, server.Name+".kubeconfig"), c.Admin, []Server{server}); err != nil {
			return err
		}
	}
	return WriteKubeconfig(filepath.Join(c.dir, AdminKubeconfig), c.Admin, servers)
}

func (c *Cluster) loadSecrets(create bool) error {
	read := func(file string, produce func() ([]byte, error)) ([]byte, error) {
		if !create {
			return os.ReadFile(c.path(file))
		}
		return secretfile.ReadOrMake(c.path(file), secretfile.Secret, produce)
	}
	if _, err := read(fileGossipKey, newGossipKey); err != nil {
		return err
	}
	var err error
	if c.GossipKeys, err = loadGossipRing(filepath.Join(c.dir, folderPKI)); err != nil {
		return err
	}
	text, err := read(fileNodeToken, c.newNodeToken)
	if err == nil {
		err = c.setNodeToken(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text, err = read(fileAccountKey, NewAccountKey); err != nil {
		return err
	}
	c.AccountKeys, err = ringOf(accountKeyForm, c.path(fileAccountKey), text)
	return err
}

func (c *Cluster) setNodeToken(text []byte) (err error) {
	if c.NodeToken, err = tokens.Parse(string(text)); err != nil {
		return err
	}
	if c.NodeToken.Role == tokens.RoleNode && c.CA.Dropped(c.NodeToken.Pin) {
		c.NodeToken = tokens.Token{}
		return nil
	}
	if c.NodeToken.Role != tokens.RoleNode || !c.CA.Holds(c.NodeToken.Pin) {
		return fmt.Errorf("%w: %s is no node's, or of another certificate authority", tokens.ErrBad, c.path(fileNodeToken))
	}
	return nil
}

func (c *Cluster) newNodeToken() ([]byte, error) {
	token, err := tokens.New(tokens.RoleNode, c.CA.Pin())
	return []byte(token.Text() + "\n"), err
}
