package envtest

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startEnvironment starts controller-runtime's own envtest, whose programs are links to this repository's binary.
func startEnvironment(t *testing.T) (*envtest.Environment, *rest.Config) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make envtest")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../setpointtest/testdata/crd"}, ErrorIfCRDPathMissing: true, AttachControlPlaneOutput: true,
	}
	begun := time.Now()
	configuration, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("envtest started in %v", time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() {
		begun := time.Now()
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("envtest stopped in %v", time.Since(begun).Round(time.Millisecond))
	})
	return environment, configuration
}

func newClient(t testing.TB, configuration *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(configuration, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEnvironment: what suites for envtest do, with the API alone.
func TestEnvironment(t *testing.T) {
	environment, configuration := startEnvironment(t)
	c := newClient(t, configuration)
	shop := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	shop.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"})
	shop.SetNamespace("default")
	shop.SetName("blue")
	if err := c.Create(t.Context(), shop); err != nil {
		t.Error(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Errorf("a pod, without anybody who makes its account: %v", err)
	}
	eve, err := environment.AddUser(envtest.User{Name: "eve", Groups: []string{"dev"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, eve.Config()).List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("eve lists secrets: %v", err)
	}
}

// TestEnvironmentOperator: a manager over a real port, with all loops.
func TestEnvironmentOperator(t *testing.T) {
	t.Setenv("SETPOINT_ENVTEST_LOOPS", "all")
	_, configuration := startEnvironment(t)
	manager := newManager(t, configuration)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	c := newClient(t, configuration)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	mustf(t, c.Create(t.Context(), namespace))
	mustf(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a", Labels: map[string]string{greet: "world"}}}))
	key := client.ObjectKey{Namespace: "other", Name: "a"}
	eventually(t, "the secret", func() bool { return c.Get(t.Context(), key, &corev1.Secret{}) == nil })
	mustf(t, c.Delete(t.Context(), namespace))
	eventually(t, "the end of the namespace", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	})
}

func mustf(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
