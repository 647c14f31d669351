package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// logKubelet answers every question for a log with the question, or refuses.
type logKubelet struct{ server *httptest.Server }

func (k logKubelet) Agent(*corev1.Node) (*url.URL, http.RoundTripper, error) {
	location, err := url.Parse(k.server.URL)
	return location, http.DefaultTransport, err
}

func newLogKubelet(t *testing.T) logKubelet {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/gone/c") {
			http.Error(w, "no such container", http.StatusNotFound)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/moved/c") {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Warning", `299 - "a node's"`)
		w.Header().Set("Trailer", "X-Node")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprintln(w, r.URL.RequestURI())
		w.Header().Set("X-Node", "c")
	}))
	t.Cleanup(server.Close)
	return logKubelet{server}
}

// newLogServer is a server with a pod on a node, behind a socket.
func newLogServer(t *testing.T) *httptest.Server {
	t.Helper()
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Kubelets = newLogKubelet(t)
	server, client := startServer(t, config)
	if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "gone", "moved"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	socket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, admin)))
	}))
	t.Cleanup(socket.Close)
	return socket
}

func TestLogs(t *testing.T) {
	server := newLogServer(t)
	const asked = "/containerLogs/default/p/c?tailLines=3\n"
	response, err := http.Get(server.URL + podPath + "/p/log?tailLines=3")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != asked {
		t.Errorf("plain: %q, %v", text, err)
	}
	for _, name := range []string{"Set-Cookie", "Warning", "X-Node"} {
		if said := response.Header.Get(name) + response.Trailer.Get(name); said != "" {
			t.Errorf("a node says %s: %s", name, said)
		}
	}
	base := strings.Replace(server.URL, "http", "ws", 1) + podPath
	socket, err := websocket.Dial(base+"/p/log?tailLines=3", "binary.k8s.io", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if text, err := io.ReadAll(socket); err != nil || string(text) != asked {
		t.Errorf("by WebSocket: %q, %v", text, err)
	}
	for _, pod := range []string{"gone", "moved"} {
		if _, err := websocket.Dial(base+"/"+pod+"/log", "binary.k8s.io", server.URL); err == nil {
			t.Errorf("%s: a refused log opened a WebSocket", pod)
		}
	}
}
