package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// NodeRequest is the certificate request of a node, whose author has shown to hold the
// key. Its subject is the node's.
type NodeRequest struct {
	Node    string
	request *x509.CertificateRequest
}

// ParseNodeRequest reads the request of a node. One that names another subject, or whose
// signature is not of its own key, is refused with ErrBadRequest.
func ParseNodeRequest(requestPEM []byte, node string) (*NodeRequest, error) {
	if err := ValidateNodeName(node); err != nil {
		return nil, err
	}
	request, err := parseRequest(requestPEM)
	if err != nil {
		return nil, err
	}
	if cn := request.Subject.CommonName; cn != NodeUser(node) {
		return nil, fmt.Errorf("%w: it names %q, want %q", ErrBadRequest, cn, NodeUser(node))
	}
	if o := request.Subject.Organization; !slices.Equal(o, []string{GroupNodes}) {
		return nil, fmt.Errorf("%w: it names the groups %q, want only %q", ErrBadRequest, o, GroupNodes)
	}
	return &NodeRequest{Node: node, request: request}, nil
}

// KeyHash names the request's key: hex of SHA-256 over its DER form.
func (r *NodeRequest) KeyHash() string { return KeyHash(r.request.RawSubjectPublicKeyInfo) }

// KeyHash is the hash by which the record of a node names its key.
func KeyHash(rawSubjectPublicKeyInfo []byte) string {
	sum := sha256.Sum256(rawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// SignNode makes the certificate with which the node calls servers, in PEM. Names and
// addresses that the request holds are left out: the certificate is a client's.
func (ca *CA) SignNode(request *NodeRequest, now time.Time) ([]byte, error) {
	return ca.signNode(nodeClient(request.Node), request, now)
}

// SignNodeServing makes the certificate with which the node serves, in PEM; ca is a
// NodeServing. It bears the node's name, and seen, the address from which a server saw
// the node call, unless it is loopback or one of the Services. What the request names is left out.
func (ca *CA) SignNodeServing(request *NodeRequest, seen string, services []netip.Prefix, now time.Time) ([]byte, error) {
	return ca.signNode(nodeServer(request.Node, seen, services), request, now)
}

func (ca *CA) signNode(l leaf, request *NodeRequest, now time.Time) ([]byte, error) {
	der, err := ca.signLeaf(l, request.request.PublicKey, now)
	if err != nil {
		return nil, err
	}
	return encodeCert(der), nil
}

// NewNodeRequest makes the request that SignNode signs, in PEM, for a key that NewKey made.
func NewNodeRequest(node string, keyPEM []byte) ([]byte, error) {
	requestPEM, err := NewRequest(pkix.Name{CommonName: NodeUser(node), Organization: []string{GroupNodes}}, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate request of node %s: %w", node, err)
	}
	return requestPEM, nil
}

// NewRequest makes a request for a certificate, in PEM, for a key that NewKey made.
func NewRequest(subject pkix.Name, keyPEM []byte) ([]byte, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// NewKey makes a private key, in PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("new key: %w", err)
	}
	return encodeKey(key)
}

func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: want one PEM block CERTIFICATE REQUEST", ErrBadRequest)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	if _, ok := request.PublicKey.(*ecdsa.PublicKey); !ok { // others may take long to check
		return nil, fmt.Errorf("%w: its key is %s, want ECDSA", ErrBadRequest, request.PublicKeyAlgorithm)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: signature: %w", ErrBadRequest, err)
	}
	return request, nil
}
