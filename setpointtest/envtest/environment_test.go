package envtest_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/setpointtest/envtest"
)

// start starts an environment beside that of the suite.
func start(t *testing.T, environment *envtest.Environment) (*rest.Config, error) {
	t.Helper()
	t.Cleanup(func() { must(t, environment.Stop()) })
	return environment.Start()
}

// TestControlPlaneOptions: the suite chooses the port, flags and folder of the API server.
func TestControlPlaneOptions(t *testing.T) {
	address, err := freeport.Address()
	must(t, err)
	host, port, _ := strings.Cut(address, ":")
	var said bytes.Buffer
	environment := &envtest.Environment{}
	api := environment.ControlPlane.GetAPIServer()
	api.Err = &said
	api.SecureServing.ListenAddr = envtest.ListenAddr{Address: host, Port: port}
	api.Configure().Set("disable-admission-plugins", "LimitRanger").Set("max-requests-inflight", "5").Set("advertise-address", "127.0.0.1")
	config, err := start(t, environment)
	must(t, err)
	if !strings.Contains(config.Host, address) {
		t.Errorf("it listens at %s, not at %s", config.Host, address)
	}
	if err := newClient(t, config).Create(t.Context(), pod()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "service account") {
		t.Errorf("a pod without an account, though the suite left out another plugin only: %v", err)
	}
	for _, want := range []string{"setpoint has no --max-requests-inflight", "--advertise-address=127.0.0.1 has no effect: nobody is told of it"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it did not say %q, but %s", want, said.String())
		}
	}
}

// TestTemplates: older suites give flags as templates.
func TestTemplates(t *testing.T) {
	environment := &envtest.Environment{ControlPlane: envtest.ControlPlane{APIServer: &envtest.APIServer{
		Args: []string{"--secure-port={{ .SecureServing.Port }}", "--cert-dir={{ .CertDir }}", "--disable-admission-plugins=ServiceAccount"},
	}}}
	_, err := start(t, environment)
	must(t, err)
	config, err := environment.ControlPlane.RESTClientConfig()
	must(t, err)
	must(t, newClient(t, config).List(t.Context(), &corev1.NamespaceList{}))
}

// TestStop: nothing is left, and another Start is another cluster.
func TestStop(t *testing.T) {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	must(t, err)
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mark"}}
	must(t, newClient(t, config).Create(t.Context(), mark))
	dir := environment.ControlPlane.APIServer.CertDir
	must(t, environment.Stop())
	must(t, environment.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
	config, err = start(t, environment)
	must(t, err)
	if err := newClient(t, config).Get(t.Context(), client.ObjectKeyFromObject(mark), mark); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the mark of the former cluster: %v", err)
	}
}

// TestExistingCluster: CRDs are installed into it, and taken away.
func TestExistingCluster(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	target, err := start(t, &envtest.Environment{UseExistingCluster: new(false)})
	must(t, err)
	other := &envtest.Environment{
		Config: target, CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{"../testdata/crd"}, CleanUpAfterUse: true},
	}
	_, err = other.Start()
	must(t, err)
	shops := &unstructured.UnstructuredList{}
	shops.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ShopList"})
	must(t, newClient(t, target).List(t.Context(), shops))
	must(t, other.Stop())
	must(t, newClient(t, target).List(t.Context(), &corev1.NamespaceList{})) // it runs on
}

// TestRefusals: what cannot be honoured is said.
func TestRefusals(t *testing.T) {
	configured := func(flag, value string) *envtest.Environment {
		environment := &envtest.Environment{}
		environment.ControlPlane.GetAPIServer().Configure().Set(flag, value)
		return environment
	}
	for name, tc := range map[string]struct {
		environment *envtest.Environment
		variable    string
		says        string
	}{
		"no CRD folder": {environment: &envtest.Environment{CRDDirectoryPaths: []string{"nowhere"}, ErrorIfCRDPathMissing: true}, says: "nowhere"},
		"authorization": {environment: configured("authorization-mode", "AlwaysAllow"), says: `setpoint has RBAC and Node, not "AlwaysAllow"`},
		"timeout":       {environment: &envtest.Environment{ControlPlaneStartTimeout: 1}, says: "it does not serve after 1ns"},
		"variable":      {environment: &envtest.Environment{}, variable: "soon", says: "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"},
		"template": {environment: &envtest.Environment{ControlPlane: envtest.ControlPlane{APIServer: &envtest.APIServer{Args: []string{"--x={{ .Nothing }}"}}}},
			says: "Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", tc.variable)
			_, err := start(t, tc.environment)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it said %v", err)
			}
		})
	}
}
