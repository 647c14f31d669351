package badinput

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/strangers"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
)

// testStrangers: nobody gains anything by what he says of himself.
func (c *cluster) testStrangers(t *testing.T) {
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	unsigned := encode(
		`{"alg":"none"}`,
	) + "." + encode(
		`{"iss":"https://kubernetes.default.svc.cluster.local","sub":"system:serviceaccount:kube-system:default","aud":["https://kubernetes.default.svc.cluster.local"],"exp":9999999999}`,
	) + "."
	nobody := c.client(t, nil)
	read := request{method: http.MethodGet, path: "/api/v1/namespaces/default/secrets/old"}
	for name, header := range map[string]http.Header{
		"front proxy":      {"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}},
		"forwarded":        {"Setpoint-User": {"admin"}, "Setpoint-Fence": {"1"}},
		"impersonation":    {"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}},
		"impersonated uid": {"Impersonate-Uid": {"1"}},
		"token":            {"Authorization": {"Bearer " + canary}},
		"token, unsigned":  {"Authorization": {"Bearer " + unsigned}},
		"token of 64 KiB":  {"Authorization": {"Bearer " + strings.Repeat("a.", 32<<10)}},
		"two tokens":       {"Authorization": {"Bearer " + unsigned, "Bearer " + canary}},
		"basic":            {"Authorization": {"Basic " + encode("admin:"+canary)}},
	} {
		r := read
		r.header = header
		c.refused(t, nobody, name, r)
	}
	joining := request{method: http.MethodPost, path: join.Path, contentType: jsonType}
	for name, body := range map[string]string{
		"no request": "x", "no token": "{}", "unknown token": `{"token":"node.` + strings.Repeat("ab", 32) + `.` + canary + `"}`, "64 KiB": `{"token":"` + strings.Repeat(canary, 6000) + `"}`,
	} {
		joining.body = body
		c.refused(t, nobody, "join: "+name, joining)
	}
	for _, path := range []string{"/setpoint.v1.ClusterService/Status", "/metrics", "/debug/pprof/heap", "/api/v1/nodes"} {
		if code, body := c.do(t, nobody, 0, request{method: http.MethodPost, path: path}); code < http.StatusBadRequest || code >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.200s", path, code, body)
		}
	}
}

// testNodes: a node's certificate opens what is the node's own, and no more.
func (c *cluster) testNodes(t *testing.T) {
	identity, err := c.trust.CA.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	node := c.client(t, identity)
	c.refused(
		t,
		node,
		"a Node with a pod range",
		request{method: http.MethodPost, path: "/api/v1/nodes", contentType: jsonType, body: `{"metadata":{"name":"n1"},"spec":{"podCIDR":"0.0.0.0/1","podCIDRs":["0.0.0.0/1"]}}`},
	)
	must := request{method: http.MethodPost, path: "/api/v1/nodes", contentType: jsonType, body: `{"metadata":{"name":"n1"}}`}
	if code, body := c.do(t, node, 0, must); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	merge := func(path, body string) request {
		return request{method: http.MethodPatch, path: path, contentType: "application/merge-patch+json", body: body}
	}
	for name, r := range map[string]request{
		"owner of itself":      merge("/api/v1/nodes/n1", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"u"}]}}`),
		"a label of others":    merge("/api/v1/nodes/n1", `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}}`),
		"a role":               merge("/api/v1/nodes/n1", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`),
		"a pod range":          merge("/api/v1/nodes/n1", `{"spec":{"podCIDR":"0.0.0.0/1","podCIDRs":["0.0.0.0/1"]}}`),
		"a second node":        {method: http.MethodPost, path: "/api/v1/nodes", contentType: jsonType, body: `{"metadata":{"name":"n3"},"spec":{"podCIDR":"0.0.0.0/1"}}`},
		"the pod network":      merge("/api/v1/namespaces/kube-system/configmaps/pod-network", `{"data":{"podCIDR":"0.0.0.0/1"}}`),
		"its taints":           merge("/api/v1/nodes/n1", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`),
		"another node":         merge("/api/v1/nodes/n2", `{"metadata":{"labels":{"a":"b"}}}`),
		"a secret not its own": {method: http.MethodGet, path: "/api/v1/namespaces/default/secrets/old"},
		"all secrets":          {method: http.MethodGet, path: "/api/v1/secrets"},
		"a pod that is no mirror": {method: http.MethodPost, path: pods, contentType: jsonType,
			body: strings.Replace(strings.ReplaceAll(existing[pods], "@", "static"), `"spec":{`, `"spec":{"nodeName":"n1",`, 1)},
		"status of another's pod": merge(pods+"/old/status", `{"status":{"phase":"Failed"}}`),
		"impersonation":           {method: http.MethodGet, path: configMaps, header: http.Header{"Impersonate-User": {"admin"}}},
		"another's CSINode":       {method: http.MethodPost, path: "/apis/storage.k8s.io/v1/csinodes", contentType: jsonType, body: `{"metadata":{"name":"n2"},"spec":{"drivers":[]}}`},
		"another's slice":         {method: http.MethodPost, path: "/apis/resource.k8s.io/v1/resourceslices", contentType: jsonType, body: `{"metadata":{"name":"s"},"spec":{"nodeName":"n2","driver":"a.b","pool":{"name":"p","resourceSliceCount":1}}}`},
		"a mirror without a node": {method: http.MethodPost, path: pods, contentType: jsonType, body: strings.Replace(strings.ReplaceAll(existing[pods], "@", "static"), `"name":"static"`, `"name":"static","annotations":{"kubernetes.io/config.mirror":"x"}`, 1)},
		"deletion of another's":   {method: http.MethodDelete, path: pods + "/old"},
		"eviction of another's":   {method: http.MethodPost, path: pods + "/old/eviction", contentType: jsonType, body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"old","namespace":"default"}}`},
		"a binding":               {method: http.MethodPost, path: pods + "/old/binding", contentType: jsonType, body: `{"target":{"kind":"Node","name":"n1"}}`},
		"a role binding": {method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", contentType: jsonType,
			body: `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`},
	} {
		c.refused(t, node, name, r)
	}
	key, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.NewNodeRequest("system:masters", key)
	if err == nil {
		_, err = trust.ParseNodeRequest(request, "system:masters")
	}
	if err == nil {
		t.Error("a node is called system:masters")
	}
	c.noRaft(t, identity)
}

// noRaft: the door of Raft is shut to nodes, before they have said anything.
func (c *cluster) noRaft(t *testing.T, identity *trust.Identity) {
	t.Helper()
	config := c.tls(t, identity)
	config.NextProtos = []string{"raft/1"}
	conn, err := tls.Dial("tcp", c.hosts[0], config)
	if err != nil {
		return // refused in the handshake
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerLimit))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a node may speak Raft")
	} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		t.Error("a node's Raft connection is kept open")
	}
}

// rawCase is what a client that knows no HTTP says, and the code it gets; 0: the
// connection ends.
type rawCase struct {
	says string
	want []int
}

// testConnections speaks HTTP/1.1 by hand.
func (c *cluster) testConnections(t *testing.T) {
	const host = "\r\nHost: a\r\nContent-Type: application/json\r\n"
	const object = `{"metadata":{"name":"raw"}}`
	for name, raw := range map[string]rawCase{
		"two lengths":         {"POST " + configMaps + " HTTP/1.1" + host + "Content-Length: 3\r\nContent-Length: 27\r\n\r\n" + object, []int{400}},
		"length and chunks":   {"POST " + configMaps + " HTTP/1.1" + host + "Content-Length: 3\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + object, []int{400, 501}},
		"negative length":     {"POST " + configMaps + " HTTP/1.1" + host + "Content-Length: -1\r\n\r\n", []int{400}},
		"chunk of nonsense":   {"POST " + configMaps + " HTTP/1.1" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + object, []int{400}},
		"a chunk without end": {"POST " + configMaps + "?timeout=1s HTTP/1.1" + host + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + object, []int{400, 408}},
		"a body that stops":   {"POST " + configMaps + "?timeout=1s HTTP/1.1" + host + "Content-Length: 1000\r\n\r\n" + object, []int{408}},
		"header of 2 MiB":     {"GET /api HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", []int{431}},
		"many headers":        {"GET /api HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-A: b\r\n", 300_000) + "\r\n", []int{431}},
		"no host":             {"GET /api HTTP/1.1\r\n\r\n", []int{400}},
		"header with newline": {"GET /api HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", []int{400}},
		"NUL in path":         {"GET /api\x00 HTTP/1.1\r\nHost: a\r\n\r\n", []int{400}},
		"path upwards":        {"GET /api/v1/namespaces/default/pods/../../../../etc/shadow HTTP/1.1\r\nHost: a\r\n\r\n", []int{301, 307, 400, 403, 404}},
		"gzip'd body":         {"POST " + configMaps + " HTTP/1.1" + host + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00", []int{400, 415}},
		"exec with channel 255": {"GET " + pods + "/old/exec?command=x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v99.channel.k8s.io\r\n\r\n\x82\x01\xff", []int{400, 403, 404, 409}},
		"upgrade to nothing": {"GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", []int{400, 403, 426}},
		"no HTTP":            {"\x00\x01\x02\x03\r\n\r\n", []int{400}},
		"Connect's protocol": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 100), []int{0, 400, 405, 505}},
	} {
		if got := c.raw(t, raw.says); !slices.Contains(raw.want, got) {
			t.Errorf("%s: %d", name, got)
		}
	}
	c.holdOpen(t)
}

// raw says something on a connection of its own and returns the status code of the
// answer.
func (c *cluster) raw(t *testing.T, says string) int {
	t.Helper()
	conn := c.dial(t, len(says)%len(c.hosts))
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, says) }() // the server may stop to read
	answer := make([]byte, len("HTTP/1.1 400"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return -1
		}
		return 0
	}
	code := 0
	_, _ = fmt.Sscanf(string(answer), "HTTP/1.1 %d", &code)
	return code
}

// floodOf strangers comes to a server: more connections that say nothing than it keeps. The
// first have to go, and who is known stays.
func (c *cluster) floodOf(t *testing.T, server int) {
	t.Helper()
	known := c.dial(t, server)
	ask := func() {
		t.Helper()
		if _, err := io.WriteString(known, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(known), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("on a connection of a known client: %+v %v", answer, err)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	ask()
	var first net.Conn
	for i := range strangers.Limit() + 50 {
		conn, err := net.Dial("tcp", c.hosts[server])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i == 0 {
			first = conn
		}
	}
	_ = first.SetReadDeadline(time.Now().Add(strangersPatience))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of too many strangers is kept: %v", err)
	}
	ask()
}

// strangersPatience is far shorter than the time after which a silent connection ends by itself.
const strangersPatience = 10 * time.Second

// holdOpen keeps connections that say nothing, and watches that nobody reads, while a
// request on another connection is answered.
func (c *cluster) holdOpen(t *testing.T) {
	t.Helper()
	c.floodOf(t, 1)
	for range 20 {
		conn := c.dial(t, 1)
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET "+configMaps+"?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	large := `{"metadata":{"name":"large"},"data":{"k":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, r := range []request{
		{method: http.MethodPost, path: configMaps, contentType: jsonType, body: large},
		{method: http.MethodPut, path: configMaps + "/large", contentType: jsonType, body: strings.Replace(large, "xxx", "xyx", 1)},
		{method: http.MethodDelete, path: configMaps + "/large"},
	} {
		if code, body := c.do(t, c.admin, 1, r); code >= http.StatusMultipleChoices {
			t.Errorf("%s beside idle connections: %d %.200s", r.method, code, body)
		}
	}
}
