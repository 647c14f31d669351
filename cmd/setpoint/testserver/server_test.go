package testserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cmd/setpoint/testserver"
)

// asking is a client of a server: in its process, or by its socket.
type asking func(t *testing.T, method, path, body string) (int, string)

// must is an answer that is no error.
func (ask asking) must(t *testing.T, method, path, body string) (answer testserver.Answer) {
	t.Helper()
	code, text := ask(t, method, path, body)
	if code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return answer
}

// inProcess asks the handler itself, so that a bubble can.
func inProcess(s *testserver.Server) asking {
	return func(t *testing.T, method, path, body string) (int, string) {
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		return recorder.Code, recorder.Body.String()
	}
}

// served is a server on a socket, and how it ends.
func served(t *testing.T) (ask asking, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := testserver.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- testserver.Run(ctx, listener, testserver.Config{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := clientOf(socket)
	return func(t *testing.T, method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://test"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text := &strings.Builder{}
		if _, err := bufio.NewReader(response.Body).WriteTo(text); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, text.String()
	}, socket
}

func clientOf(socket string) *http.Client {
	dialer := &net.Dialer{}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}}}
}

// kubernetesOf is client-go with the kubeconfig of a cluster.
func kubernetesOf(t *testing.T, ask asking, cluster string) kubernetes.Interface {
	t.Helper()
	code, text := ask(t, "GET", "/clusters/"+cluster+"/kubeconfig", "")
	if code != http.StatusOK {
		t.Fatal(code, text)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// has reports whether the cluster has the ConfigMap.
func has(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func create(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestForksAndMarks: each fork has its own future, and a cluster goes back to a mark.
func TestForksAndMarks(t *testing.T) {
	ask, socket := served(t)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may use the socket: %v, %v", info.Mode(), err)
	}
	id := ask.must(t, "POST", "/clusters", `{"apiOnly": true}`).Cluster
	client := kubernetesOf(t, ask, id)
	create(t, client, "before")
	mark := ask.must(t, "POST", "/clusters/"+id+"/marks", "").Mark
	create(t, client, "after")
	fork := kubernetesOf(t, ask, ask.must(t, "POST", "/clusters/"+id+"/fork", "").Cluster)
	create(t, fork, "in-the-fork")
	ask.must(t, "POST", "/clusters/"+id+"/reset/"+mark, "")
	client = kubernetesOf(t, ask, id)
	if !has(t, client, "before") || has(t, client, "after") || !has(t, fork, "after") || has(t, client, "in-the-fork") {
		t.Error("the cluster is not as it was, or the fork is not as it was made")
	}
	if why := ask.must(t, "GET", "/clusters/"+id+"/why/default/configmap/before", "").Why; len(why) == 0 || !strings.Contains(why[0], "before") {
		t.Errorf("why: %q", why)
	}
	ask.must(t, "POST", "/clusters/"+id+"/advance/1h", "")
	create(t, client, "in-an-hour")
	object, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "in-an-hour", metav1.GetOptions{})
	if err != nil || time.Until(object.CreationTimestamp.Time) < 50*time.Minute {
		t.Errorf("no time has passed: %v, %v", object.CreationTimestamp, err)
	}
	if _, err := testserver.Listen(socket); err == nil || !strings.Contains(err.Error(), "a test server answers at "+socket+" already") {
		t.Errorf("a second one: %v", err)
	}
}

// TestSessionEnds: what a session made ends with its connection, as when a test is killed; what others made stays.
func TestSessionEnds(t *testing.T) {
	ask, socket := served(t)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://test/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := clientOf(socket).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var session testserver.Answer
	if err := json.NewDecoder(response.Body).Decode(&session); err != nil {
		t.Fatal(err)
	}
	of := `{"apiOnly": true, "session": "` + session.Session + `"}`
	id := ask.must(t, "POST", "/clusters", of).Cluster
	fork := ask.must(t, "POST", "/clusters/"+id+"/fork", "").Cluster
	other := ask.must(t, "POST", "/clusters", `{"apiOnly": true}`).Cluster
	kill()
	for _, gone := range []string{id, fork} {
		for code := http.StatusOK; code != http.StatusNotFound; {
			if code, _ = ask(t, "POST", "/clusters/"+gone+"/marks", ""); t.Context().Err() != nil {
				t.Fatal("it is left")
			}
		}
	}
	ask.must(t, "POST", "/clusters/"+other+"/marks", "")
	if code, text := ask(t, "POST", "/clusters", of); code != http.StatusNotFound || !strings.Contains(text, "it has ended, and what it made with it") {
		t.Error(code, text)
	}
}

// TestIdle: a server that nobody uses ends after a minute, and not while a session is open.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(t.Context(), testserver.Config{})
		ended := func() bool {
			synctest.Wait()
			select {
			case <-s.Ended():
				return true
			default:
				return false
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		go s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/session", nil))
		time.Sleep(time.Hour)
		if ended() {
			t.Error("it ended while a session was open")
		}
		leave()
		time.Sleep(59 * time.Second)
		inProcess(s).must(t, "GET", "/version", "")
		if time.Sleep(59 * time.Second); ended() {
			t.Error("it ended within a minute after a request")
		}
		if time.Sleep(2 * time.Second); !ended() {
			t.Error("it did not end")
		}
		for method, path := range map[string]string{"POST": "/clusters", "GET": "/session"} {
			if code, text := inProcess(s)(t, method, path, ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "the server ends: start another one") {
				t.Error(path, code, text)
			}
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestIdleWithClusters: a server that holds a cluster without a session stays for an hour after the last request, since who uses the
// cluster's port is not seen, and for a minute once it is deleted.
func TestIdleWithClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		deletes bool
		stays   time.Duration
	}{"held": {false, time.Hour}, "deleted": {true, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := testserver.New(t.Context(), testserver.Config{})
				id := inProcess(s).must(t, "POST", "/clusters", `{"apiOnly": true}`).Cluster
				if tc.deletes {
					inProcess(s).must(t, "DELETE", "/clusters/"+id, "")
				}
				asked := time.Now()
				<-s.Ended()
				if stayed := time.Since(asked); stayed != tc.stays {
					t.Errorf("it stayed for %v", stayed)
				}
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestRefusals: what is not understood is refused with a sentence.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(t.Context(), testserver.Config{})
		ask := inProcess(s)
		id := ask.must(t, "POST", "/clusters", `{"apiOnly": true, "nodes": 1}`).Cluster
		several := ask.must(t, "POST", "/clusters", `{"apiOnly": true, "replicas": 3}`).Cluster
		for _, tc := range []struct {
			method, path, body string
			code               int
			says               string
		}{
			{"POST", "/clusters", `{"node": 3}`, 400, `the body is not a cluster: json: unknown field \"node\"`},
			{"POST", "/clusters", `{"nodes": -1}`, 400, "--simulated-nodes must be 0 to 5000"},
			{"POST", "/clusters", `{"loops": ["deployments"]}`, 400, `there is no control loop \"deployments\"`},
			{"POST", "/clusters", `{"session": "session-9"}`, 404, `there is no session \"session-9\"`},
			{"POST", "/clusters", `{"loops": ["` + strings.Repeat("a", 70_000) + `"]}`, 400, "request body too large"},
			{"POST", "/clusters/x/fork", "", 404, `there is no cluster \"x\"`},
			{"DELETE", "/clusters/x", "", 404, `there is no cluster \"x\"`},
			{"GET", "/clusters/x/kubeconfig", "", 404, `there is no cluster \"x\"`},
			{"POST", "/clusters/" + several + "/fork", "", 400, "a cluster of several replicas cannot be forked"},
			{"POST", "/clusters/" + id + "/reset/m", "", 404, `the cluster has no mark \"m\"`},
			{"POST", "/clusters/" + id + "/advance/soon", "", 400, `\"soon\" is no time that passes`},
			{"POST", "/clusters/" + id + "/advance/-1h", "", 400, `\"-1h\" is no time that passes`},
			{"POST", "/clusters/" + id + "/nodes/sim-1/away", "", 400, `switched on or off, not \"away\"`},
			{"POST", "/clusters/" + id + "/nodes/sim-2/off", "", 400, `the cluster simulates no node \"sim-2\": it has 1`},
			{"POST", "/clusters/" + id + "/nodes/sim-01/off", "", 400, `simulates no node \"sim-01\"`},
			{"POST", "/clusters/" + id + "/advance/168h1s", "", 400, "at most 168h0m0s pass at once"},
			{"POST", "/clusters", `{"nodes": 1} {"nodes": 2}`, 400, "there is more after the cluster"},
			{"POST", "/clusters", `{"nodes": 1}x`, 400, "there is more after the cluster"},
			{"POST", "/clusters/" + id + "/marks", "{}", 400, "it takes no body"},
			{"DELETE", "/clusters/" + id, `{"dryRun": true}`, 400, "it takes no body"},
			{"GET", "/session", "{}", 400, "it takes no body"},
			{"GET", "/clusters/" + id + "/kubeconfig", "{}", 400, "it takes no body"},
			{"POST", "/clusters?nodes=3", "", 400, "it takes no query parameters"},
			{"GET", "/clusters/x/why/default/pod/a", "", 404, `there is no cluster \"x\"`},
			{"GET", "/clusters/" + id + "/why/default/shops/a", "", 400, "shops"},
			{"GET", "/cluster", "", 404, "there is no GET /cluster: setpoint testserver --help lists the requests"},
		} {
			if code, text := ask(t, tc.method, tc.path, tc.body); code != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("%s %s: %d %s\nand not %d %s", tc.method, tc.path, code, text, tc.code, tc.says)
			}
		}
		ask.must(t, "DELETE", "/clusters/"+id, "")
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestLeftovers: the socket of a server that was killed is taken away, and nothing else is.
func TestLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	again, err := testserver.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody takes the socket away: the lock still keeps a second server off, and the end of the first leaves what is there now.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := testserver.Listen(path); err == nil || !strings.Contains(err.Error(), "a test server answers at "+path+" already") {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "other" {
		t.Errorf("it took away what is not its own: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := testserver.Listen(path); err == nil || !strings.Contains(err.Error(), "is there and is no socket") {
		t.Errorf("a file: %v", err)
	}
	if _, err := testserver.Listen("/" + strings.Repeat("a", 200)); err == nil || !strings.Contains(err.Error(), "choose a shorter one") {
		t.Errorf("a long path: %v", err)
	}
}
