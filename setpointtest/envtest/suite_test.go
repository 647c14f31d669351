package envtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/setpoint-io/setpoint/setpointtest/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
)

// This file is a suite as kubebuilder writes them, but for its import.

var (
	testEnv *envtest.Environment
	cfg     *rest.Config
)

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{"../testdata/crd"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"testdata/webhook"}},
	}
	if cfg, err = testEnv.Start(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serveWebhooks(ctx) }()
	code = m.Run()
	cancel()
	if err := <-served; err != nil {
		return 0, err
	}
	return code, testEnv.Stop()
}

func serveWebhooks(ctx context.Context) error {
	options := testEnv.WebhookInstallOptions
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
	})
	if err != nil {
		return err
	}
	manager.GetWebhookServer().Register("/validate-colours", &webhook.Admission{Handler: admission.HandlerFunc(judge)})
	return manager.Start(ctx)
}

func judge(_ context.Context, request admission.Request) admission.Response {
	if request.Name == "green" {
		return admission.Denied("green is no colour")
	}
	return admission.Allowed("")
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCustomResource(t *testing.T) {
	shop := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	shop.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"})
	shop.SetNamespace("default")
	shop.SetName("blue")
	must(t, newClient(t, cfg).Create(t.Context(), shop))
	if len(testEnv.CRDs) == 0 {
		t.Error("Start did not say which CRDs it installed")
	}
}

// TestPodWithoutAccount: nobody makes service accounts, so nobody asks for them.
func TestPodWithoutAccount(t *testing.T) {
	must(t, newClient(t, cfg).Create(t.Context(), pod()))
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
}

func TestWebhook(t *testing.T) {
	c := newClient(t, cfg)
	colour := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"colour": name}}}
	}
	err := c.Create(t.Context(), colour("blue"))
	for apierrors.IsInternalError(err) { // until the webhook is served
		err = c.Create(t.Context(), colour("blue"))
	}
	must(t, err)
	if err := c.Create(t.Context(), colour("green")); !apierrors.IsForbidden(err) {
		t.Errorf("green: %v", err)
	}
}

func TestAddUser(t *testing.T) {
	eve, err := testEnv.AddUser(envtest.User{Name: "eve", Groups: []string{"dev"}}, &rest.Config{QPS: 7})
	must(t, err)
	if eve.Config().QPS != 7 {
		t.Error("the base of the client is lost")
	}
	if err := newClient(t, eve.Config()).List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("eve lists secrets: %v", err)
	}
	boss, err := testEnv.AddUser(envtest.User{Name: "boss", Groups: []string{"system:masters"}}, nil)
	must(t, err)
	kubeconfig, err := boss.KubeConfig()
	must(t, err)
	fromFile, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	must(t, newClient(t, fromFile).List(t.Context(), &corev1.SecretList{}))
}
