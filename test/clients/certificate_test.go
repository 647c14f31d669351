package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// webhookCertificate writes tls.crt and tls.key for a name, signed by themselves: the
// certificate is its own CA.
func webhookCertificate(t *testing.T, name string) (ca []byte, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	mustf(t, err, "making a key")
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	mustf(t, err, "making a certificate")
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	mustf(t, err, "encoding the key")
	dir = t.TempDir()
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	mustf(t, os.WriteFile(filepath.Join(dir, "tls.crt"), ca, 0o600), "writing the certificate")
	mustf(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600), "writing the key")
	return ca, dir
}

// machineAddress is an address of this machine that may stand in an EndpointSlice,
// which must not lead to whoever reads it.
func machineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	mustf(t, err, "asking for addresses")
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback")
	return ""
}
