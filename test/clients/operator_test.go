package clients

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const (
	// sitesCount is how many objects the operator looks after.
	sitesCount = 12
	// reconcilesMax and errorsMax bound what one operator does for all of them,
	// through the deaths of a leader of each kind: a loop that feeds itself, or
	// retries without end, does many times more.
	reconcilesMax = sitesCount * 40
	errorsMax     = sitesCount * 10
)

var (
	sites      = schemaOf("web.example.com", "v1", "sites")
	betaSites  = schemaOf("web.example.com", "v1beta1", "sites")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

func schemaOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// operator is one process of the operator.
type operator struct {
	*process
	slice, metrics string
}

func (o operator) leads() bool {
	return strings.Contains(o.output.String(), "successfully acquired lease")
}

// TestOperator follows an operator's objects from their creation to their end, while
// the leading operator and the leading server are killed.
func TestOperator(t *testing.T) {
	c := startServers(t)
	startKWOK(t, c, 2)
	operators := installOperator(t, c)
	createSites(t, c)
	judgeSites(t, c)

	leader := operators[0]
	c.await(t, schemaOf("coordination.k8s.io", "v1", "leases"), "registry", "sites", "held", func(o *unstructured.Unstructured) bool { return o != nil })
	if !leader.leads() {
		operators[0], operators[1] = operators[1], operators[0]
		leader = operators[0]
	}
	leader.kill()
	mustf(t, c.client.DiscoveryV1().EndpointSlices("registry").Delete(t.Context(), leader.slice, metav1.DeleteOptions{}), "as its kubelet would")
	awaitSite(t, c, "after-operator", 2)

	c.killLeader(t)
	awaitSite(t, c, "after-server", 3)
	c.kubectl(t, "", "scale", "site", "after-operator", "--replicas=4")
	c.await(t, sites, "default", "after-operator", "scaled", siteReady(4))

	deleteSites(t, c)
	judgeMetrics(t, operators[1])
}

// installOperator installs it as a release would, and runs two of it under its own
// service account.
func installOperator(t *testing.T, c *cluster) []operator {
	t.Helper()
	ca, certDir := webhookCertificate(t, "sites.registry.svc")
	manifest, err := os.ReadFile("testdata/operator/install.yaml")
	mustf(t, err, "reading the manifest")
	c.kubectl(t, strings.ReplaceAll(string(manifest), "CA_BUNDLE", base64.StdEncoding.EncodeToString(ca)), "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=established", "--timeout=30s", "crd/sites.web.example.com")
	kubeconfig := serviceAccountKubeconfig(t, c, "registry", "sites")
	var all []operator
	for i := range 2 {
		o := operator{slice: fmt.Sprintf("sites-%d", i+1), metrics: freeAddress(t)}
		port := portOf(t, freeAddress(t))
		o.process = mustStart(t, "Serving webhook server", []string{"KUBECONFIG=" + kubeconfig}, "operator",
			"-webhook-port", strconv.Itoa(int(port)), "-cert-dir", certDir, "-metrics-address", o.metrics)
		_, err := c.client.DiscoveryV1().EndpointSlices("registry").Create(t.Context(), endpointOf(t, o.slice, port), metav1.CreateOptions{})
		mustf(t, err, "creating an endpoint")
		all = append(all, o)
	}
	return all
}

func endpointOf(t *testing.T, name string, port int32) *discoveryv1.EndpointSlice {
	portName := "webhooks"
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "sites"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{machineAddress(t)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
}

// serviceAccountKubeconfig is what a program in a pod of this account would use.
func serviceAccountKubeconfig(t *testing.T, c *cluster, namespace, name string) string {
	t.Helper()
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	mustf(t, err, "a token for %s", name)
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	mustf(t, err, "the administrator's kubeconfig")
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token.Status.Token
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	mustf(t, clientcmd.WriteToFile(*config, path), "writing %s", path)
	return path
}

func createSites(t *testing.T, c *cluster) {
	t.Helper()
	for i := range sitesCount {
		createSite(t, c, fmt.Sprintf("site-%d", i), map[string]any{"replicas": int64(i % 3), "theme": "dark"})
	}
	beta := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "web.example.com/v1beta1", "kind": "Site", "metadata": map[string]any{"name": "beta"}, "spec": map[string]any{"size": int64(2)},
	}}
	_, err := c.dynamic.Resource(betaSites).Namespace("default").Create(t.Context(), beta, metav1.CreateOptions{})
	mustf(t, err, "creating a site of v1beta1")
	c.await(t, sites, "default", "beta", "ready", siteReady(2))

	// What they wait for comes later.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "dark"}, StringData: map[string]string{"color": "black"}}
	_, err = c.client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{})
	mustf(t, err, "creating a secret")
	for i := range sitesCount {
		name := fmt.Sprintf("site-%d", i)
		c.await(t, configMaps, "default", name, "themed", func(o *unstructured.Unstructured) bool {
			return o != nil && fmt.Sprint(o.Object["data"]) == fmt.Sprintf("map[text:hello from %s theme:black]", name)
		})
		c.await(t, sites, "default", name, "ready", siteReady(int64(i%3)))
		c.await(t, configMaps, "registry", "default."+name, "registered", func(o *unstructured.Unstructured) bool { return o != nil })
	}
}

func createSite(t *testing.T, c *cluster, name string, spec map[string]any) {
	t.Helper()
	site := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "web.example.com/v1", "kind": "Site", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	// A server may call a dead operator's webhooks until it has seen its endpoint go.
	err := retry.OnError(retry.DefaultBackoff, apierrors.IsInternalError, func() error {
		_, err := c.dynamic.Resource(sites).Namespace("default").Create(t.Context(), site, metav1.CreateOptions{})
		return err
	})
	mustf(t, err, "creating %s", name)
}

func awaitSite(t *testing.T, c *cluster, name string, replicas int64) {
	t.Helper()
	createSite(t, c, name, map[string]any{"replicas": replicas})
	c.await(t, sites, "default", name, "ready", siteReady(replicas))
}

func siteReady(replicas int64) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if !hasCondition("Ready")(o) {
			return false
		}
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
		return n == replicas
	}
}

// judgeSites asks for what must be refused, and how the kind is shown.
func judgeSites(t *testing.T, c *cluster) {
	t.Helper()
	for _, refused := range []struct{ name, patch, why string }{
		{"by a rule", `{"spec":{"replicas":11}}`, "more than ten replicas are for big sites"},
		{"by a rule about the change", `{"spec":{"theme":null}}`, "a theme stays"},
		{"by the schema", `{"spec":{"replicas":-1}}`, "should be greater than or equal to 0"},
		{"by the webhook", `{"spec":{"text":"rude"}}`, `admission webhook "validate.web.example.com" denied the request: no rude texts`},
	} {
		_, err := c.dynamic.Resource(sites).Namespace("default").Patch(t.Context(), "site-1", "application/merge-patch+json", []byte(refused.patch), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), refused.why) {
			t.Errorf("%s: %v, want %q", refused.name, err, refused.why)
		}
	}
	if out := c.kubectl(t, "", "patch", "site", "site-1", "--type=merge", "-p", `{"spec":{"replicas":0}}`); !strings.Contains(out, "Warning: a site without replicas serves nobody") {
		t.Errorf("no warning of the webhook:\n%s", out)
	}
	if out := c.kubectl(t, "", "get", "sites.v1beta1.web.example.com", "beta", "-o", "jsonpath={.spec.size}"); !strings.Contains(out, "2") || !strings.Contains(out, "Warning: use v1") {
		t.Errorf("as v1beta1:\n%s", out)
	}
	if out := c.kubectl(t, "", "get", "all"); !strings.Contains(out, "site.web.example.com/beta") {
		t.Errorf("not in all:\n%s", out)
	}
	if out := c.kubectl(t, "", "get", "sites", "beta", "--no-headers"); len(strings.Fields(out)) != 4 || strings.Fields(out)[2] != "True" {
		t.Errorf("columns: %s", out)
	}
}

// deleteSites deletes all of them; what they own goes with them, and the finalizer
// removes the rest.
func deleteSites(t *testing.T, c *cluster) {
	t.Helper()
	c.kubectl(t, "", "annotate", "site", "beta", "keep=yes")
	err := c.dynamic.Resource(sites).Namespace("default").Delete(t.Context(), "beta", metav1.DeleteOptions{})
	if err == nil || !strings.Contains(err.Error(), "this site is kept") {
		t.Errorf("deleting what is kept: %v", err)
	}
	c.kubectl(t, "", "annotate", "site", "beta", "keep-")
	foreground := metav1.DeletePropagationForeground
	err = c.dynamic.Resource(sites).Namespace("default").DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.ListOptions{})
	mustf(t, err, "deleting all")
	for _, name := range []string{"site-0", "site-11", "beta", "after-operator", "after-server"} {
		c.await(t, sites, "default", name, "gone", gone)
		c.await(t, configMaps, "registry", "default."+name, "gone", gone)
		c.await(t, deployments, "default", name, "gone", gone)
		c.await(t, configMaps, "default", name, "gone", gone)
	}
}

// judgeMetrics looks for storms in what controller-runtime counted.
func judgeMetrics(t *testing.T, o operator) {
	t.Helper()
	response, err := http.Get("http://" + o.metrics + "/metrics")
	mustf(t, err, "asking for metrics")
	defer response.Body.Close()
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		if family, _, _ := strings.Cut(name, "{"); err == nil {
			sums[family] += n
		}
	}
	mustf(t, lines.Err(), "reading metrics")
	total, failed := sums["controller_runtime_reconcile_total"], sums["controller_runtime_reconcile_errors_total"]
	t.Logf("reconciles: %v, of them failed: %v; retries: %v", total, failed, sums["workqueue_retries_total"])
	if total == 0 || total > reconcilesMax || failed > errorsMax {
		t.Errorf("%v reconciles, want at most %d; %v failed, want at most %d", total, reconcilesMax, failed, errorsMax)
	}
}
