package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// apiNames are the names by which every server is reached besides its own:
// from the machine itself and from pods. No node may hold a certificate for one.
var apiNames = []string{
	"localhost", "127.0.0.1", "::1",
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	"10.96.0.1",
}

// IssueServer makes the identity of a server: it serves the API and calls its peers and the agents.
func (ca *CA) IssueServer(server Server, now time.Time) (*Identity, error) {
	if err := server.validate(); err != nil {
		return nil, err
	}
	return ca.issue(leaf{
		commonName: serverPrefix + server.Name, group: GroupServers,
		names: server.Names(), server: true,
	}, now)
}

// IssueAdmin makes the client identity that may do everything.
func (ca *CA) IssueAdmin(now time.Time) (*Identity, error) {
	return ca.issue(leaf{commonName: adminName, group: GroupMasters}, now)
}

// IssueNode makes the identity of an agent inside this process (dev, tests).
// Agents elsewhere keep their key to themselves and have a request signed: SignNode.
func (ca *CA) IssueNode(node string, addresses []string, now time.Time) (*Identity, error) {
	l, err := nodeLeaf(node, addresses)
	if err != nil {
		return nil, err
	}
	return ca.issue(l, now)
}

// SignNode signs an agent's certificate request and returns the certificate in PEM.
// The subject is built here from the node's name; a request that names another one is
// refused, so that a mistaken or forged request is noticed. addresses are IP addresses;
// others, and those by which a server is reached, are left out: servers dial a node by its name.
func (ca *CA) SignNode(requestPEM []byte, node string, addresses []string, now time.Time) ([]byte, error) {
	l, err := nodeLeaf(node, addresses)
	if err != nil {
		return nil, err
	}
	request, err := parseRequest(requestPEM)
	if err != nil {
		return nil, err
	}
	if cn := request.Subject.CommonName; cn != l.commonName {
		return nil, fmt.Errorf("%w: it names %q, want %q", ErrBadRequest, cn, l.commonName)
	}
	if o := request.Subject.Organization; !slices.Equal(o, []string{GroupNodes}) {
		return nil, fmt.Errorf("%w: it names the groups %q, want only %q", ErrBadRequest, o, GroupNodes)
	}
	der, err := ca.signLeaf(l, request.PublicKey, now)
	if err != nil {
		return nil, err
	}
	return encodeCert(der), nil
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
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: signature: %w", ErrBadRequest, err)
	}
	return request, nil
}

func nodeLeaf(node string, addresses []string) (leaf, error) {
	if err := ValidateNodeName(node); err != nil {
		return leaf{}, err
	}
	names := []string{node}
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil && !slices.Contains(apiNames, ip.String()) {
			names = append(names, ip.String())
		}
	}
	return leaf{commonName: nodePrefix + node, group: GroupNodes, names: names, server: true}, nil
}

// ValidateNodeName refuses names that no node can have: not a DNS subdomain, an IP
// address, or a name by which the API is reached.
func ValidateNodeName(node string) error {
	if problems := validation.IsDNS1123Subdomain(node); len(problems) > 0 {
		return fmt.Errorf("%w: node name %q: %s", ErrBadRequest, node, strings.Join(problems, "; "))
	}
	if slices.Contains(apiNames, node) || net.ParseIP(node) != nil {
		return fmt.Errorf("%w: node name %q is reserved", ErrBadRequest, node)
	}
	return nil
}

// NodeUser is the user name of a node's certificate.
func NodeUser(node string) string { return nodePrefix + node }

// NodeOfUser returns the node that a user name stands for.
func NodeOfUser(user string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, nodePrefix)
	return node, ok && node != ""
}
