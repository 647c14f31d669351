package nodefaults

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// tenant is a user with the role edit in a namespace of his own name, where his pods run.
type tenant struct {
	n      *node
	name   string
	config *rest.Config
	client kubernetes.Interface
	// refused counts the answers 429, after which client-go asks again by itself.
	refused atomic.Int64
}

// newTenant has some pods, with service accounts that may edit too.
func newTenant(t *testing.T, n *node, name string, pods int) *tenant {
	t.Helper()
	a := &tenant{n: n, name: name}
	a.config = n.configOf(t, name)
	a.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &a.refused} })
	var err error
	a.client, err = kubernetes.NewForConfig(a.config)
	check(t, err)
	_, err = n.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
	_, err = n.client.RbacV1().RoleBindings(name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edit"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name}, {Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: name}},
	}, metav1.CreateOptions{})
	check(t, err)
	n.setpoint(t, "kubectl", "wait", "--for=create", "--timeout=60s", "serviceaccount/default", "--namespace", name)
	for i := range pods {
		_, err := a.client.CoreV1().Pods(name).Create(t.Context(), newPod(a.pod(i)), metav1.CreateOptions{})
		check(t, err)
	}
	for i := range pods {
		n.await(t, podTimeMax, "a tenant's pod", func(ctx context.Context) string {
			pod, err := a.client.CoreV1().Pods(name).Get(ctx, a.pod(i), metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			return isReady(pod)
		})
	}
	return a
}

func (a *tenant) pod(i int) string { return fmt.Sprintf("%s-%d", a.name, i) }

// end waits until nothing of the tenant is left.
func (a *tenant) end(t *testing.T) {
	t.Helper()
	namespaces := a.n.client.CoreV1().Namespaces()
	check(t, namespaces.Delete(t.Context(), a.name, metav1.DeleteOptions{}))
	a.n.await(t, podTimeMax, "the end of namespace "+a.name, func(ctx context.Context) string {
		left, err := namespaces.Get(ctx, a.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint(left.Status, err)
	})
}

// exec runs a command in a pod, by SPDY or by WebSocket, until it has ended; who has input for it ends it by that.
func (a *tenant) exec(ctx context.Context, socket bool, pod string, in io.Reader, out io.Writer, command ...string) error {
	at := a.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(a.name).Name(pod).SubResource("exec").VersionedParams(
		&corev1.PodExecOptions{Container: "c", Command: command, Stdin: in != nil, Stdout: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(a.config, http.MethodPost, at)
	if socket {
		executor, err = remotecommand.NewWebSocketExecutor(a.config, http.MethodGet, at.String())
	}
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out})
}

// tell is an exec that ends at once.
func (a *tenant) tell(ctx context.Context, socket bool, pod string) error {
	var out bytes.Buffer
	err := a.exec(ctx, socket, pod, nil, &out, "/workload", "tell", a.name)
	if err == nil && out.String() != a.name+"\n" {
		err = fmt.Errorf("exec said %q", out.String())
	}
	return err
}

type counting struct {
	http.RoundTripper
	refused *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		c.refused.Add(1)
	}
	return answer, err
}

// configOf is that of a user with a certificate of his own, which he asks for as all users do.
func (n *node) configOf(t *testing.T, name string) *rest.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	wanted, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	check(t, err)
	requests := n.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: wanted}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	_, err = requests.UpdateApproval(t.Context(), name, request, metav1.UpdateOptions{})
	check(t, err)
	n.await(t, readyTimeMax, "the certificate of "+name, func(ctx context.Context) string {
		if request, err = requests.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if len(request.Status.Certificate) == 0 {
			return "it is not issued"
		}
		return ""
	})
	secret, err := x509.MarshalECPrivateKey(key)
	check(t, err)
	config := rest.AnonymousClientConfig(n.config)
	config.QPS = -1
	config.CertData, config.KeyData = request.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	return config
}
