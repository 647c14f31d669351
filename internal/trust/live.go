package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// errNoCertificate says that a node has no certificate to serve with yet.
var errNoCertificate = errors.New("this node has no certificate to serve with yet")

// Live is an identity that is renewed while the process runs: each new connection shows
// the newest certificate. Those that exist go on with the one they began with. It is
// safe for concurrent use.
type Live struct {
	current atomic.Pointer[held]
	now     func() time.Time // nil: the process's
}

type held struct {
	id *Identity
	// chain has the authorities' certificates behind the own one.
	pair, chain *tls.Certificate
	// pool are the authorities of those it talks to.
	pool *x509.CertPool
}

// NewLive begins with an identity.
func NewLive(id *Identity) (*Live, error) {
	l := &Live{}
	return l, l.Renew(id)
}

// By makes the connections judge the other side's certificate by another time than the process's. It is called before the first of them.
func (l *Live) By(now func() time.Time) *Live {
	l.now = now
	return l
}

// Renew makes new connections show another identity, and believe its authorities.
func (l *Live) Renew(id *Identity) error {
	config, pool, err := id.config()
	if err != nil {
		return err
	}
	behind, err := id.behind()
	if err != nil {
		return err
	}
	pair := config.Certificates[0]
	chain := pair
	chain.Certificate = append(pair.Certificate[:1:1], behind...)
	l.current.Store(&held{id: id, pair: &pair, chain: &chain, pool: pool})
	return nil
}

// Identity is the newest one; nil if there is none yet.
func (l *Live) Identity() *Identity {
	if h := l.current.Load(); h != nil {
		return h.id
	}
	return nil
}

// Pool are the authorities that are believed now; nil if there is no identity yet.
func (l *Live) Pool() *x509.CertPool {
	if h := l.current.Load(); h != nil {
		return h.pool
	}
	return nil
}

// NeedsRenewal reports whether a third or less of the certificate's life is left, and another one would end later.
func (l *Live) NeedsRenewal(now time.Time) bool {
	h := l.current.Load()
	return h == nil || !h.id.isFresh(h.pair.Leaf, now)
}

// ServerConfig is Identity.ServerConfig with the newest certificate and authorities.
func (l *Live) ServerConfig() (*tls.Config, error) {
	config, err := following(l.Identity().ServerConfig, func(h *held) *tls.Certificate { return h.chain }, l)
	if err == nil {
		l.judgeClients(config)
	}
	return config, err
}

// judgeClients makes a listener judge each client by the newest authorities. The configuration may be completed before it is used.
func (l *Live) judgeClients(config *tls.Config) {
	type judging struct {
		pool   *x509.CertPool
		config *tls.Config // nil: as it is
	}
	var last atomic.Pointer[judging]
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := judging{pool: l.Pool()}
		if before := last.Load(); before != nil && before.pool == now.pool {
			return before.config, nil
		}
		if now.pool != nil && !now.pool.Equal(config.ClientCAs) {
			now.config = config.Clone()
			now.config.GetConfigForClient, now.config.ClientCAs = nil, now.pool
		}
		last.Store(&now)
		return now.config, nil
	}
}

// ClientConfig is Identity.ClientConfig with the newest certificate. The authorities are those of now: who dials for long asks Pool.
func (l *Live) ClientConfig() (*tls.Config, error) {
	return following(l.Identity().ClientConfig, ownPair, l)
}

// NodeClientConfig is the TLS configuration with which a server dials the agent of a
// node, at whatever address it has registered: the certificate must be that node's, of
// the authority NodeServing.
func (l *Live) NodeClientConfig(node string, serving *CA) (*tls.Config, error) {
	return following(func() (*tls.Config, error) { return l.Identity().nodeClientConfig(node, serving) }, ownPair, l)
}

// AgentConfig is the TLS configuration of an agent's listener: who shows a certificate must be a server or a node (GroupNodes), with one
// of the authority in caPEM; the handlers tell them apart. Who shows none has to prove otherwise who it is, to the handlers. l may have no
// identity yet.
func (l *Live) AgentConfig(caPEM []byte) (*tls.Config, error) {
	config, err := following(func() (*tls.Config, error) { return agentConfig(caPEM) }, ownPair, l)
	if err == nil {
		l.judgeClients(config)
	}
	return config, err
}

func ownPair(h *held) *tls.Certificate { return h.pair }

// following makes a configuration look up the certificate for each connection.
func following(make func() (*tls.Config, error), which func(*held) *tls.Certificate, l *Live) (*tls.Config, error) {
	config, err := make()
	if err != nil {
		return nil, err
	}
	newest := func() (*tls.Certificate, error) {
		if h := l.current.Load(); h != nil {
			return which(h), nil
		}
		return nil, errNoCertificate
	}
	config.Certificates, config.Time = nil, l.now
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return newest() }
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return newest() }
	return config, nil
}

func agentConfig(caPEM []byte) (*tls.Config, error) {
	pool, err := poolOf(caPEM)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			return requireMember(state)
		},
	}, nil
}

// requireMember fails unless the verified certificate of the other side is a server's or a node's.
func requireMember(state tls.ConnectionState) error {
	certificate, err := verifiedPeer(state)
	if err != nil || slices.Contains(certificate.Subject.Organization, GroupNodes) {
		return err
	}
	return RequireServer(state)
}

// PeerConfig is the TLS configuration with which a node asks other nodes for what needs no secrecy and is checked when it has come, such as
// layers of images: it shows the node's newest certificate, and does not check the other side's, whose authority agents do not know.
func (l *Live) PeerConfig() (*tls.Config, error) {
	return following(func() (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, nil //nolint:gosec // see above
	}, ownPair, l)
}

func (id *Identity) nodeClientConfig(node string, serving *CA) (*tls.Config, error) {
	config, _, err := id.config()
	if err != nil {
		return nil, err
	}
	if config.RootCAs, err = poolOf(serving.CertPEM()); err != nil {
		return nil, err
	}
	config.ServerName = node
	config.VerifyConnection = func(state tls.ConnectionState) error { return requireNode(state, node) }
	return config, nil
}

func requireNode(state tls.ConnectionState, node string) error {
	certificate, err := verifiedPeer(state)
	if err != nil {
		return err
	}
	if certificate.Subject.CommonName != NodeUser(node) {
		return fmt.Errorf("node %s: the certificate of the other side is that of %q", node, certificate.Subject.CommonName)
	}
	return nil
}
