package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// register makes a Node, as a machine does that is about to use its certificate.
func register(t *testing.T, s *Server, name string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.RESTConfig(inprocess.Server))
	if err != nil {
		t.Fatal(err)
	}
	soon(t, func() string {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// asNode asks with a node's certificate.
func (s *site) asNode(t *testing.T, id *trust.Identity, method, path, body string) (code int, text string) {
	t.Helper()
	config, err := id.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.self.Endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// TestADeletedNodeMayOnlyRegister: what its machine has open ends, its certificate counts for nothing but making the Node again, and the
// Node that it makes belongs to its key.
func TestADeletedNodeMayOnlyRegister(t *testing.T) {
	s := newSite(t)
	own, err := s.cluster.CA.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	former, err := s.cluster.CA.IssueNode("n1", time.Now()) // another key
	if err != nil {
		t.Fatal(err)
	}
	register(t, s.server, "n1")
	watch := s.dial(t, own, "http/1.1")
	if _, err := fmt.Fprint(watch, "GET /api/v1/nodes?watch=1&timeoutSeconds=3000 HTTP/1.1\r\nHost: server-1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(watch), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	if err := s.client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(answer.Body).ReadString(0); err == nil {
		t.Error("the watch goes on")
	}
	mine := func(key string) string {
		return fmt.Sprintf(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","annotations":{%q:%q}}}`, trust.NodeKeyAnnotation, key)
	}
	ownKey := keyHashOf(t, own)
	for _, step := range []struct {
		id                 *trust.Identity
		method, path, body string
		code               int
		says               string
	}{
		{own, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "", 401, "node n1: there is no such Node"},
		{own, "GET", "/api/v1/nodes", "", 401, "there is no such Node"},
		{own, "GET", "/version", "", 401, "there is no such Node"},
		{own, "GET", "/api/v1/nodes/n1", "", 404, "not found"},
		{own, "POST", "/api/v1/nodes", mine(keyHashOf(t, former)), 403, "not allowed to modify the annotation"},
		{own, "POST", "/api/v1/nodes", strings.ReplaceAll(mine(ownKey), `"n1"`, `"n2"`), 403, "is not allowed to modify node"},
		{own, "POST", "/api/v1/nodes", mine(ownKey), 201, ownKey},
		{own, "GET", "/api/v1/nodes", "", 200, ownKey},
		{former, "GET", "/api/v1/nodes", "", 401, "another machine has joined under this name"},
	} {
		if code, text := s.asNode(t, step.id, step.method, step.path, step.body); code != step.code || !strings.Contains(text, step.says) {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, code, text, step.code, step.says)
		}
	}
}

func keyHashOf(t *testing.T, id *trust.Identity) string {
	t.Helper()
	certificate, err := trust.ParseCertificate(id.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	return trust.KeyHash(certificate.RawSubjectPublicKeyInfo)
}
