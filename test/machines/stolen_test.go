package machines

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/peers"
)

// thief has the files of a node, and a computer of his own on the link of the machines.
type thief struct {
	*testing.T
	c      *Cluster
	tls    *tls.Config
	client *http.Client
	// api is a server, agent the port of another machine's agent.
	api, agent string
}

// door is what the thief tries. Allowed is what a node may do with its own things.
type door struct {
	method, url, body string
	allowed           bool
}

// stolenNode: whoever has the files of a node's agent can do with them what that node can, from anywhere, and nothing with what is another
// node's: its Node, Lease, pods, their Secrets and tokens, its port, the services of servers. Once the node is revoked no door opens any more,
// on no server, and what was open has ended.
func (c *Cluster) stolenNode(t *testing.T) {
	leader := c.leader(t)
	m := c.Machines[slices.IndexFunc(c.Machines, func(m *Machine) bool { return m != leader })]
	other := c.Machines[slices.IndexFunc(c.Machines, func(o *Machine) bool { return o != leader && o != m })]
	c.placeWithSecret(t, "own", m)
	c.placeWithSecret(t, "theirs", other)
	d := c.thief(t, m, other)
	doors := d.doors(m, other)
	for _, o := range doors {
		shut := []int{http.StatusForbidden}
		if o.allowed {
			shut = []int{0, http.StatusForbidden, http.StatusUnauthorized}
		}
		if code, text := d.try(o); slices.Contains(shut, code) == o.allowed {
			t.Errorf("%s %s: %d %.300s", o.method, o.url, code, text)
		}
	}
	d.raftIsShut()
	watched := d.watch(m)
	idle, err := d.dial(d.tls)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if code := d.say(idle); code != http.StatusOK {
		t.Fatalf("the version: %d", code)
	}
	revoking, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := exec.CommandContext(revoking, c.binary, "revoke", "node/"+m.Node, "--kubeconfig", c.Kubeconfig()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.ends(watched)
	if code := d.say(idle); code != http.StatusUnauthorized && code != 0 {
		t.Errorf("on an open connection he is answered %d", code)
	}
	for _, o := range doors {
		Until(t, patience, func(context.Context) string { // each server and agent hears of it when it does
			if code, text := d.try(o); code != http.StatusUnauthorized {
				return fmt.Sprintf("%s %s: %d %.300s", o.method, o.url, code, text)
			}
			return ""
		})
	}
	for _, server := range c.Machines {
		Until(t, patience, func(context.Context) string {
			code, text := d.try(door{method: "GET", url: "https://" + server.IP + ":6443/api/v1/nodes/" + m.Node})
			if code != http.StatusUnauthorized || !strings.Contains(text, "node/"+m.Node+" was revoked on ") {
				return fmt.Sprintf("%s: %d %s", server.Server, code, text)
			}
			return ""
		})
	}
	Until(t, patience, func(ctx context.Context) string {
		if ready, err := c.nodeReady(ctx, m.Node); ready || err != nil {
			return fmt.Sprintf("%s is Ready: %v %v", m.Node, ready, err)
		}
		return ""
	})
}

// placeWithSecret makes a pod on the machine, and a Secret that it has as a volume, both of that name.
func (c *Cluster) placeWithSecret(t *testing.T, name string, m *Machine) {
	t.Helper()
	core := c.Clients[0].CoreV1()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": name}}
	if _, err := core.Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: m.Node, Containers: []corev1.Container{{Name: "c", Image: "setpoint.local/demo:v1"}},
		Volumes: []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}},
	}}
	if _, err := core.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	Until(t, patience, func(ctx context.Context) string {
		placed, err := core.Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || !podReady(placed) {
			return fmt.Sprintf("pod %s is not ready: %v", name, err)
		}
		return ""
	})
}

// thief reads the files as they lie on the machine's disk.
func (c *Cluster) thief(t *testing.T, m, other *Machine) *thief {
	t.Helper()
	files, err := trust.LoadNode(m.dataDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(files.Identity.CertPEM, files.Identity.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true} // a thief does not mind whom he asks
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true, TLSHandshakeTimeout: patience, ResponseHeaderTimeout: patience,
	}}
	t.Cleanup(client.CloseIdleConnections)
	return &thief{T: t, c: c, tls: config, client: client, api: other.IP + ":6443", agent: other.IP + ":10250"}
}

func (d *thief) doors(m, other *Machine) []door {
	api, agent := "https://"+d.api, "https://"+d.agent
	core, rest := api+"/api/v1", api+"/apis"
	pods, status := core+"/namespaces/default/pods/", `{"status":{"message":"stolen"}}`
	labels, token := `{"metadata":{"labels":{"stolen":"yes"}}}`, `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"theirs"}}}`
	return []door{
		{"GET", core + "/nodes/" + m.Node, "", true},
		{"GET", core + "/namespaces/default/secrets/own", "", true},
		{"PATCH", pods + "own/status", status, true},
		{"POST", api + "/setpoint.session.v1.SessionService/", "{}", true},
		{"PATCH", core + "/nodes/" + other.Node, labels, false},
		{"PATCH", core + "/nodes/" + other.Node + "/status", status, false},
		{"DELETE", core + "/nodes/" + other.Node, "", false},
		{"PATCH", rest + "/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + other.Node, `{"spec":{"holderIdentity":"stolen"}}`, false},
		{"GET", core + "/namespaces/default/secrets/theirs", "", false},
		{"GET", core + "/namespaces/default/secrets", "", false},
		{"PATCH", pods + "theirs/status", status, false},
		{"DELETE", pods + "theirs", "", false},
		{"POST", pods + "theirs/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"theirs"}}`, false},
		{"GET", pods + "theirs/log", "", false},
		{"POST", pods + "theirs/exec?command=/setpoint&stdout=1", "", false},
		{"POST", core + "/namespaces/default/serviceaccounts/default/token", token, false},
		{"GET", core + "/nodes/" + other.Node + "/proxy/pods", "", false},
		{"GET", core + "/nodes/" + m.Node + "/proxy/pods", "", false},
		{"GET", api + "/metrics", "", false},
		{"GET", api + "/debug/pprof/cmdline", "", false},
		{"POST", api + "/setpoint.v1.ClusterService/Change", "{}", false},
		{"GET", api + "/setpoint.v1.ClusterService/Backup", "", false},
		{"POST", api + "/setpoint.raftstore.forward.v1.PeerService/", "{}", false},
		{"POST", api + "/setpoint.session.v1.DigestService/", "{}", false},
		{"GET", agent + "/pods", "", false},
		{"GET", agent + "/metrics", "", false},
		{"GET", agent + "/containerLogs/default/theirs/c", "", false},
		{"POST", agent + "/exec/default/theirs/c?command=/setpoint&output=1", "", false},
		{"POST", agent + "/portForward/default/theirs", "", false},
	}
}

// try returns the answer's code, 0 if there is none, and its text.
func (d *thief) try(o door) (code int, text string) {
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, o.method, o.url, strings.NewReader(o.body))
	if err != nil {
		d.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if o.method == "PATCH" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	return answer.StatusCode, fmt.Sprint(string(body), err)
}

// raftIsShut: the node's certificate is no server's.
func (d *thief) raftIsShut() {
	config := d.tls.Clone()
	config.NextProtos = []string{peers.RaftProtocol}
	conn, err := d.dial(config)
	if err != nil {
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		d.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	switch {
	case err == nil:
		d.Errorf("Raft answers a node with %d bytes", n)
	case errors.Is(err, os.ErrDeadlineExceeded):
		d.Errorf("Raft keeps a node's connection open")
	}
}

// dial waits for the handshake no longer than patience.
func (d *thief) dial(config *tls.Config) (*tls.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", d.api, config)
}

// watch begins one of the node's own pods, and returns what comes.
func (d *thief) watch(m *Machine) io.ReadCloser {
	url := "https://" + d.api + "/api/v1/pods?watch=1&timeoutSeconds=3000&fieldSelector=spec.nodeName%3D" + m.Node
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, url, nil)
	if err != nil {
		d.Fatal(err)
	}
	answer, err := d.client.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		d.Fatalf("watch: %v %v", answer, err)
	}
	d.Cleanup(func() { _ = answer.Body.Close() })
	return answer.Body
}

// ends reads until the server ends the watch.
func (d *thief) ends(watched io.ReadCloser) {
	var late atomic.Bool
	timer := time.AfterFunc(patience, func() {
		late.Store(true)
		_ = watched.Close()
	})
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, watched)
	if late.Load() {
		d.Fatal("the watch of a revoked node goes on")
	}
}

// say asks on a connection, which stays open, and returns the code of the answer; 0: it was closed.
func (d *thief) say(conn *tls.Conn) int {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0
	}
	if _, err := conn.Write([]byte("GET /version HTTP/1.1\r\nHost: server\r\n\r\n")); err != nil {
		return 0
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.Fatal("a connection gets no answer, and is not closed")
	}
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
