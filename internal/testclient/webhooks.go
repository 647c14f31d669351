package testclient

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// listenLimit is how long a program may take to serve its webhooks.
const listenLimit = 10 * time.Second

// WebhookServer is where a program under test serves its webhooks: controller-runtime's webhook.Options has the
// same fields.
type WebhookServer struct {
	Host string
	Port int
	// CertDir holds tls.crt and tls.key.
	CertDir string

	caPEM []byte
}

// OpenWebhooks chooses a port of loopback, and puts a certificate for it into dir.
func OpenWebhooks(dir string) (*WebhookServer, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	server := &WebhookServer{Host: host, Port: number, CertDir: dir}
	return server, server.certify(address)
}

// certify writes a certificate for the address.
func (s *WebhookServer) certify(address string) error {
	authority, err := trust.NewCluster(time.Now())
	if err != nil {
		return err
	}
	id, err := authority.Server(trust.Server{Name: "webhook", Endpoint: address}, time.Now())
	if err != nil {
		return err
	}
	s.caPEM = id.CAPEM
	if err := os.WriteFile(filepath.Join(s.CertDir, "tls.crt"), id.CertPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.CertDir, "tls.key"), id.KeyPEM, 0o600)
}

// await waits until the port of the webhooks answers.
func (s *WebhookServer) await() error {
	address := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	for deadline := time.Now().Add(listenLimit); ; time.Sleep(pollMin) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing serves the webhooks of the Config at %s: give the manager webhook.NewServer with Host, Port and CertDir of WebhookServer()", address)
		}
	}
}

// lead makes the clientConfigs of an object that name a Service name the program under test.
func (s *WebhookServer) lead(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, hook := range hooks {
			if hook, ok := hook.(map[string]any); ok {
				s.leadConfig(hook["clientConfig"])
			}
		}
		_ = unstructured.SetNestedSlice(object.Object, hooks, "webhooks")
	case "CustomResourceDefinition":
		config, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig")
		if found {
			s.leadConfig(config)
			_ = unstructured.SetNestedMap(object.Object, config, "spec", "conversion", "webhook", "clientConfig")
		}
	}
}

func (s *WebhookServer) leadConfig(clientConfig any) {
	config, ok := clientConfig.(map[string]any)
	if !ok {
		return
	}
	service, ok := config["service"].(map[string]any)
	if !ok {
		return
	}
	path, _ := service["path"].(string)
	delete(config, "service")
	config["url"] = "https://" + net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) + path
	config["caBundle"] = base64.StdEncoding.EncodeToString(s.caPEM)
}
