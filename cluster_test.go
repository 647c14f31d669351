package setpoint_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
)

// started is a cluster that serves, and how its administrator reaches it.
func started(t *testing.T, config setpoint.Config) (*setpoint.Cluster, *rest.Config) {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	access, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	access.QPS = -1
	return cluster, access
}

// TestNothingIsLeft of a cluster whose directory was temporary: no file, no goroutine.
func TestNothingIsLeft(t *testing.T) {
	cluster, access := started(t, setpoint.Config{SimulatedNodes: 2})
	client := kubernetes.NewForConfigOrDie(access)
	until(t, "two nodes", func() bool {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 2
	})
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(cluster.Kubeconfig())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary directory: %v", err)
	}
	until(t, "no goroutine of ours", func() bool { return ours() == "" })
}

// TestWatchOverASocket: every layer of a server that stands around a request must pass on what a watch writes. Clients that cannot
// watch list again and again, and nothing else fails.
func TestWatchOverASocket(t *testing.T) {
	_, access := started(t, setpoint.Config{APIOnly: true})
	for name, change := range map[string]func(*rest.Config){
		"HTTP/2":   func(*rest.Config) {},
		"HTTP/1.1": func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} },
	} {
		config := rest.CopyConfig(access)
		change(config)
		client := kubernetes.NewForConfigOrDie(config)
		events, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer events.Stop()
		if event := <-events.ResultChan(); event.Type != watch.Added {
			t.Errorf("%s: %+v", name, event)
		}
	}
}

// TestAStopRightAfterTheStart finds everything still starting, and is no error.
func TestAStopRightAfterTheStart(t *testing.T) {
	for range 3 {
		cluster, err := setpoint.Start(t.Context(), setpoint.Config{SimulatedNodes: 3})
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// ours is the stack of a goroutine that this module has left.
func ours() string {
	buffer := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(stack, "github.com/setpoint-io/setpoint/") && !strings.Contains(stack, "setpoint_test.") {
			return stack
		}
	}
	return ""
}

// TestADataDirectoryIsKept by a cluster that was told of it.
func TestADataDirectoryIsKept(t *testing.T) {
	dir := t.TempDir()
	cluster, access := started(t, setpoint.Config{DataDir: dir, Replicas: 3})
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := kubernetes.NewForConfigOrDie(access).CoreV1().ConfigMaps("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	_, access = started(t, setpoint.Config{DataDir: dir, Replicas: 3})
	if _, err := kubernetes.NewForConfigOrDie(access).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestAPIOnly: what upstream's API server does itself is done, and nothing else.
func TestAPIOnly(t *testing.T) {
	_, access := started(t, setpoint.Config{APIOnly: true})
	extensions := apiextensions.NewForConfigOrDie(access).ApiextensionsV1().CustomResourceDefinitions()
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	if _, err := extensions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the definition is established", func() bool {
		d, err := extensions.Get(t.Context(), definition.Name, metav1.GetOptions{})
		return err == nil && len(d.Status.Conditions) == 2
	})
	_, err := kubernetes.NewForConfigOrDie(access).CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the service account that a control loop makes: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, config := range map[string]setpoint.Config{
		"replicas": {Replicas: 6}, "nodes": {SimulatedNodes: -1}, "port": {Port: 65536}, "pods": {PodCIDR: "nowhere"},
	} {
		if _, err := setpoint.Start(t.Context(), config); err == nil {
			t.Errorf("%s: %+v was started", name, config)
		}
	}
}

// until asks a real cluster until it answers as wanted.
func until(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ask(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s\n%s", what, ours())
		}
	}
}
