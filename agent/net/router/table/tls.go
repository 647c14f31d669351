package table

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// authoritiesKey is where a ConfigMap has the certificates of authorities.
const authoritiesKey = "ca.crt"

// Authorities are the certificates of a ConfigMap by which others are judged, as PEM.
type Authorities struct{ PEM string }

var errNoAuthorities = errors.New("its ca.crt has no certificate")

// AuthoritiesOf reads those of a ConfigMap.
func AuthoritiesOf(configMap *corev1.ConfigMap) (*Authorities, error) {
	text := configMap.Data[authoritiesKey]
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
		return nil, errNoAuthorities
	}
	return &Authorities{PEM: text}, nil
}

// Names are those of which a certificate must have one.
type Names struct{ Hosts, URIs []string }

// TLS is how connections to a backend are encrypted, and whom they trust.
type TLS struct {
	// Key is equal for all that trust the same.
	Key    string
	Config *tls.Config
}

// NewTLS asks for a hostname, and trusts a certificate of the authorities for it, or if there are any names for one of these. Without
// authorities it trusts those of the machine.
func NewTLS(hostname string, authorities []*Authorities, names Names) *TLS {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: hostname}
	if len(authorities) > 0 {
		config.RootCAs = x509.NewCertPool()
		for _, a := range authorities {
			config.RootCAs.AppendCertsFromPEM([]byte(a.PEM))
		}
	}
	if len(names.Hosts)+len(names.URIs) > 0 {
		config.InsecureSkipVerify = true // verify does it, by other names
		config.VerifyConnection = func(state tls.ConnectionState) error { return names.verify(config.RootCAs, state.PeerCertificates) }
	}
	text, _ := json.Marshal([]any{hostname, authorities, names}) // strings cannot fail
	sum := sha256.Sum256(text)
	return &TLS{Key: hex.EncodeToString(sum[:]), Config: config}
}

var (
	errNoCertificates = errors.New("the backend shows no certificate")
	errNoSuchName     = errors.New("the backend's certificate has none of the names")
)

func (n *Names) verify(roots *x509.CertPool, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errNoCertificates
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return err
	}
	if slices.ContainsFunc(n.Hosts, func(host string) bool { return hasHost(chain[0], host) }) {
		return nil
	}
	for _, uri := range chain[0].URIs {
		if slices.Contains(n.URIs, uri.String()) {
			return nil
		}
	}
	return errNoSuchName
}

// hasHost tells whether a certificate is for a host; one for "*.example.com" has to say so itself.
func hasHost(c *x509.Certificate, host string) bool {
	if strings.HasPrefix(host, "*.") {
		return slices.ContainsFunc(c.DNSNames, func(name string) bool { return strings.EqualFold(name, host) })
	}
	return c.VerifyHostname(host) == nil
}
