package beside

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/testclient"
	"github.com/setpoint-io/setpoint/internal/testlink"
)

// endLimit is how long a cluster may take to end with its test.
const endLimit = 30 * time.Second

// Cluster is a control plane of a test. In, As and Within return views of the same cluster.
type Cluster struct {
	*world
	namespace string
	timeout   time.Duration
	// as is another user than the administrator, if it has a name.
	as rest.ImpersonationConfig
}

// world is what the views of a cluster share.
type world struct {
	t testing.TB
	// ctx is the test's. It is taken once: Ginkgo makes another one each time, and ends the suite if that is in a cleanup.
	ctx     context.Context
	config  Config
	session *testlink.Session
	// id is the cluster's name in the server.
	id       string
	kinds    testclient.Kinds
	refused  testclient.Refused
	programs testclient.Programs
	hooks    *testclient.WebhookServer
	mu       sync.Mutex // of the fields below, and held while something is logged: after the end nothing may be
	ended    bool
	port     port
}

// In is the cluster with another namespace for names without one.
func (c *Cluster) In(namespace string) *Cluster {
	view := *c
	view.namespace = namespace
	return &view
}

// Namespace is where names without one are looked for.
func (c *Cluster) Namespace() string { return c.namespace }

// As is the cluster as another user sees it, with the rights that RBAC gives it.
func (c *Cluster) As(name string, groups ...string) *Cluster {
	view := *c
	view.as = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return &view
}

// Within is the cluster with another patience for Eventually and the like.
func (c *Cluster) Within(timeout time.Duration) *Cluster {
	view := *c
	view.timeout = timeout
	return &view
}

// RESTConfig is a client of the cluster, for client-go, controller-runtime, Helm and everything else that takes a *rest.Config.
// It stays one when the cluster is Reset.
func (c *Cluster) RESTConfig() *rest.Config {
	c.t.Helper()
	c.alive()
	return c.viewed(true)
}

// viewed is a client as the user of the view. watched ones tell what they are refused.
func (c *Cluster) viewed(watched bool) *rest.Config {
	return &rest.Config{
		Host: insideHost, Transport: door{c.world, watched}, WarningHandler: warnings{c.world}, Impersonate: c.as,
		QPS: -1, // the server's flow control is enough
	}
}

// Kubernetes is a typed client of the built-in kinds.
func (c *Cluster) Kubernetes() kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	c.must(err)
	return client
}

// Kubeconfig returns the path of a kubeconfig, for programs that are other processes. A cluster that was Reset has another one.
func (c *Cluster) Kubeconfig() string {
	c.t.Helper()
	c.alive()
	text, err := c.kubeconfig()
	c.must(err)
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	c.must(os.WriteFile(path, text, 0o600))
	return path
}

func (w *world) kubeconfig() ([]byte, error) {
	return w.session.Text(w.ctx, testlink.ClusterLimit, http.MethodGet, "/clusters/"+w.id+"/kubeconfig", nil)
}

// ask asks the server something of the cluster.
func (w *world) ask(ctx context.Context, limit time.Duration, method, path string) (testlink.Answer, error) {
	return w.session.Ask(ctx, limit, method, "/clusters/"+w.id+path, nil)
}

// alive panics after the end of the test, when it can no longer fail.
func (c *Cluster) alive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		panic(fmt.Sprintf("beside: the cluster of %s is used after the end of that test: start or fork one in the test that uses it", c.t.Name()))
	}
}

func (c *Cluster) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatalf("beside: %v", err)
	}
}

// should is must for what is known at the end of a test.
func (c *Cluster) should(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Errorf("beside: %v", err)
	}
}

// end ends the cluster, after the programs that Run started.
func (w *world) end() {
	w.mu.Lock()
	w.ended = true
	w.port.close()
	w.mu.Unlock()
	ctx := context.WithoutCancel(w.ctx)
	if _, err := w.ask(ctx, endLimit, http.MethodDelete, ""); err != nil && !w.t.Failed() {
		w.t.Errorf("beside: ending the cluster: %v", err)
	}
}

// log tells the test, while it lasts.
func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Logf(format, args...)
	}
}

// warnings are those of the API.
type warnings struct{ *world }

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.log("Warning: %s", text)
	}
}
