package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

const (
	// registryAddress is that of TLS: the images' names carry no port.
	registryAddress = "127.0.0.1:443"
	headerLimit     = 10 * time.Second
	certificateLife = 24 * time.Hour
)

// hosts are the registries whose part this program plays.
var hosts = []string{"registry.k8s.io", "gcr.io", "k8s.gcr.io"}

// serveRegistry serves an empty registry and writes the certificate that its clients shall trust.
func serveRegistry(certificateFile string) error {
	certificate, err := ownCertificate()
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(certificateFile, text, 0o600); err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", registryAddress, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: headerLimit}
	go server.Serve(listener) // ends with this program
	return nil
}

func ownCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "critest"}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// toLoopback takes each host for this program. It pushes to itself: there is nobody to be sure of.
func toLoopback() http.RoundTripper {
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, registryAddress)
		},
	}
}
