package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// oneAgent is every node's agent.
type oneAgent struct{ server *httptest.Server }

func (a oneAgent) Agent(*corev1.Node) (*url.URL, http.RoundTripper, error) {
	location, err := url.Parse(a.server.URL)
	return location, a.server.Client().Transport, err
}

// TestRedirectsOfAgentsLeadNowhere: neither does the server follow them, nor is the
// client sent there with its credentials.
func TestRedirectsOfAgentsLeadNowhere(t *testing.T) {
	agent := httptest.NewTLSServer(http.RedirectHandler("https://10.0.0.9/stolen", http.StatusTemporaryRedirect))
	defer agent.Close()
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Kubelets = oneAgent{agent}
	server, client := startServer(t, config)
	if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, admin)))
	}))
	defer front.Close()
	for _, what := range []string{"log", "exec?command=x&stdout=1", "attach?stdout=1", "portforward?ports=1"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+podPath+"/p/"+what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if what != "log" {
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}
		}
		response, err := front.Client().Transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode < http.StatusBadRequest || response.Header.Get("Location") != "" {
			t.Errorf("%s: %d to %q", what, response.StatusCode, response.Header.Get("Location"))
		}
	}
}
