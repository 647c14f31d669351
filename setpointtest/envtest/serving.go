package envtest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// What kube-apiserver looks for in its folder of certificates.
const (
	certFile = "apiserver.crt"
	keyFile  = "apiserver.key"
	// readableByOwner is the mode of what the folder holds.
	readableByOwner = 0o600
)

// listenAddress chooses where the API server listens, as far as the suite has not.
func listenAddress(api *APIServer) error {
	serving := &api.SecureServing
	if api.SecurePort != 0 { // older suites set it
		serving.Port = strconv.Itoa(api.SecurePort)
	}
	if serving.Address == "" {
		serving.Address = "127.0.0.1"
	}
	if serving.Port == "" {
		free, err := freeport.Address()
		if err != nil {
			return err
		}
		if _, serving.Port, err = net.SplitHostPort(free); err != nil {
			return err
		}
	}
	if api.URL == nil { // older suites read it
		api.URL = serving.URL("https", "")
	}
	return nil
}

// serveWith makes the certificate of the API server, unless the suite has put one into its folder.
func serveWith(api *APIServer) error {
	if _, err := os.Stat(filepath.Join(api.CertDir, certFile)); !os.IsNotExist(err) {
		return err
	}
	authority, err := trust.NewCA(time.Now())
	if err != nil {
		return err
	}
	at := net.JoinHostPort(api.SecureServing.Address, api.SecureServing.Port)
	id, err := authority.IssueServer(trust.Server{Name: "envtest", Endpoint: at}, time.Now())
	if err != nil {
		return err
	}
	api.SecureServing.CA = id.CAPEM
	if err := os.WriteFile(filepath.Join(api.CertDir, certFile), id.CertPEM, readableByOwner); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(api.CertDir, keyFile), id.KeyPEM, readableByOwner)
}
