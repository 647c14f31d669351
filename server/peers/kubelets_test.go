package peers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestStreamsEndWithTheAuthority: what was opened to an agent that has shown a certificate of an authority, as exec and attach are, ends when
// that is dropped.
func TestStreamsEndWithTheAuthority(t *testing.T) {
	now := time.Now()
	cluster, err := trust.NewCluster(now)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := cluster.CA.NodeServing()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := serving.IssueNodeServing("n", cluster.CA, now)
	if err != nil {
		t.Fatal(err)
	}
	live, err := trust.NewLive(shown)
	if err != nil {
		t.Fatal(err)
	}
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	if agent.TLS, err = live.AgentConfig(cluster.CA.CertPEM()); err != nil {
		t.Fatal(err)
	}
	agent.StartTLS()
	t.Cleanup(agent.Close)

	own, err := cluster.CA.IssueServer(trust.Server{Name: "s", Endpoint: "127.0.0.1:1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := trust.NewLive(own)
	if err != nil {
		t.Fatal(err)
	}
	judge := &revocation.Judge{}
	judge.Believe(cluster.CA.KeyIDs())
	_, port, err := net.SplitHostPort(agent.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
	}}
	target, transport, err := NewKubelets(identity, serving, judge).Agent(node)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Get(target.String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	stream := bufio.NewReader(answer.Body)
	if line, err := stream.ReadString('\n'); err != nil || answer.ProtoMajor != 1 {
		t.Fatalf("%q by %s: %v", line, answer.Proto, err)
	}
	text, next, err := trust.MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	ring, old := cluster.CA.Ring(), cluster.CA.Pin()
	for _, step := range []func() error{
		func() error { _, err := ring.Add(text); return err },
		func() error { return ring.Use(next) },
		func() error { return ring.Drop(old) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		judge.Believe(cluster.CA.KeyIDs())
	}
	if rest, err := io.ReadAll(stream); err == nil || len(rest) > 0 {
		t.Errorf("the stream goes on: %q, %v", rest, err)
	}
}
