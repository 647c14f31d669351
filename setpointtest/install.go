package setpointtest

import (
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// establishLimit is how long a CRD may take until its kind is served.
const establishLimit = 10 * time.Second

var errNames = errors.New("another CRD or kind has its names: is it listed twice, under two names?")

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// WebhookServer is where a program under test serves its webhooks: controller-runtime's webhook.Options has the
// same fields.
type WebhookServer struct {
	Host string
	Port int
	// CertDir holds tls.crt and tls.key.
	CertDir string

	caPEM []byte
}

// WebhookServer tells where the program under test must serve the webhooks of the Config.
func (c *Cluster) WebhookServer() WebhookServer {
	c.t.Helper()
	c.alive()
	if c.hooks == nil {
		c.t.Fatal("setpointtest: WebhookServer needs Config.Webhooks: without them the cluster calls no webhooks")
	}
	return *c.hooks
}

// HasWebhooks reports whether the cluster calls webhooks at WebhookServer: the Config lists some.
func (c *Cluster) HasWebhooks() bool { return c.hooks != nil }

// install makes what the Config lists.
func (c *Cluster) install() {
	c.t.Helper()
	crds := c.readAll("CRDs", c.config.CRDs)
	webhooks := c.readAll("Webhooks", c.config.Webhooks)
	if len(webhooks) > 0 {
		c.openWebhooks()
	}
	c.installAll("CRDs", crds)
	c.installAll("Webhooks", webhooks)
	for _, crd := range crds {
		if crd.GetKind() == "CustomResourceDefinition" {
			c.awaitEstablished(crd.GetName())
		}
	}
}

func (c *Cluster) installAll(field string, objects []*unstructured.Unstructured) {
	c.t.Helper()
	for _, object := range objects {
		if c.hooks != nil {
			c.hooks.lead(object)
		}
		if err := c.apply(object); err != nil {
			c.t.Fatalf("setpointtest: Config.%s: %s %s: %v", field, object.GetKind(), object.GetName(), err)
		}
	}
}

func (c *Cluster) readAll(field string, paths []string) (all []*unstructured.Unstructured) {
	c.t.Helper()
	for _, path := range paths {
		objects, err := read(path)
		if err != nil {
			c.t.Fatalf("setpointtest: Config.%s: %v", field, err)
		}
		all = append(all, objects...)
	}
	return all
}

func (c *Cluster) definitions() (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(c.asAdmin())
	if err != nil {
		return nil, err
	}
	return client.Resource(definitionsResource), nil
}

func (c *Cluster) awaitEstablished(name string) {
	c.t.Helper()
	client, err := c.definitions()
	c.must(err)
	how := ""
	err = await(c.t.Context(), establishLimit, func() (is bool, err error) {
		crd, err := client.Get(c.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			is, how = hasCondition(crd, "Established")
		}
		if fit, why := hasCondition(crd, "NamesAccepted"); err == nil && !fit && strings.Contains(why, " is False") {
			how, err = why, errNames // it does not become so by waiting
		}
		return is, err
	})
	if err != nil {
		c.t.Fatalf("setpointtest: the CRD %s is not established: %v: %s", name, err, how)
	}
}

// openWebhooks chooses a port, and makes a certificate for it.
func (c *Cluster) openWebhooks() {
	c.t.Helper()
	if c.bubble {
		c.t.Fatal("setpointtest: webhooks need a port, for which a bubble cannot wait: leave Config.Webhooks empty in synctest.Test")
	}
	address, err := freeport.Address()
	c.must(err)
	host, port, err := net.SplitHostPort(address)
	c.must(err)
	number, err := strconv.Atoi(port)
	c.must(err)
	authority, err := trust.NewCluster(time.Now())
	c.must(err)
	id, err := authority.Server(trust.Server{Name: "webhook", Endpoint: address}, time.Now())
	c.must(err)
	c.hooks = &WebhookServer{Host: host, Port: number, CertDir: c.t.TempDir(), caPEM: id.CAPEM}
	c.must(os.WriteFile(filepath.Join(c.hooks.CertDir, "tls.crt"), id.CertPEM, 0o600))
	c.must(os.WriteFile(filepath.Join(c.hooks.CertDir, "tls.key"), id.KeyPEM, 0o600))
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
