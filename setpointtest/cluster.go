package setpointtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/testclient"
)

// Cluster is a control plane of a test. In, As, Within and For return views of the same cluster.
type Cluster struct {
	*world
	namespace string
	timeout   time.Duration
	user      *user.DefaultInfo
	// life is that of the program that Explore crashes, nil for everybody else.
	life *life
}

// world is what the views of a cluster share.
type world struct {
	t testing.TB
	// ctx is the test's. It is taken once: Ginkgo makes another one each time, and ends the suite if that is in a cleanup.
	ctx    context.Context
	config Config
	bubble bool
	// current is the cluster; Reset replaces it.
	current atomic.Pointer[setpoint.Cluster]
	// start is the revision at which the test began.
	start    uint64
	asked    asked
	faults   faults
	refused  testclient.Refused
	kinds    testclient.Kinds
	hooks    *WebhookServer
	programs testclient.Programs
	mu       sync.Mutex // of ended, and held while something is logged: after the end nothing may be
	ended    bool
}

func admin() *user.DefaultInfo {
	return &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
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
	view.user = &user.DefaultInfo{Name: name, Groups: groups}
	return &view
}

// Within is the cluster with another patience for Eventually and the like.
func (c *Cluster) Within(timeout time.Duration) *Cluster {
	view := *c
	view.timeout = timeout
	return &view
}

// RESTConfig is a client of the cluster without a socket, for client-go, controller-runtime, Helm and everything
// else that takes a *rest.Config. Bodies pass through the codecs, and watches and errors are as over the wire.
func (c *Cluster) RESTConfig() *rest.Config {
	c.t.Helper()
	c.alive()
	config := c.current.Load().ClientConfig(c.user)
	config.Transport = door{c.world, c.user, c.life}
	config.WarningHandler = warnings{c.world}
	return config
}

// Kubernetes is a typed client of the built-in kinds.
func (c *Cluster) Kubernetes() kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	c.must(err)
	return client
}

// Kubeconfig opens a real port with TLS on loopback, and returns the path of a kubeconfig for it, for programs that
// are other processes.
func (c *Cluster) Kubeconfig() string {
	c.t.Helper()
	c.alive()
	if c.bubble {
		c.t.Fatal("setpointtest: a bubble cannot wait for a port: call Kubeconfig outside of synctest.Test, or use RESTConfig")
	}
	if c.config.DataDir != "" {
		return c.current.Load().Kubeconfig() // it has a port
	}
	text, err := c.current.Load().Listen()
	c.must(err)
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	c.must(os.WriteFile(path, text, 0o600))
	return path
}

// alive panics after the end of the test, when it can no longer fail.
func (c *Cluster) alive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		panic(fmt.Sprintf("setpointtest: the cluster of %s is used after the end of that test: start or fork one in the test that uses it", c.t.Name()))
	}
}

func (c *Cluster) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatalf("setpointtest: %v", err)
	}
}

// should is must for what is known at the end of a test.
func (c *Cluster) should(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Errorf("setpointtest: %v", err)
	}
}

// end stops the cluster, after the programs that Run started.
func (w *world) end() {
	w.mu.Lock()
	early := w.ended
	w.mu.Unlock()
	if w.t.Failed() && !early { // what filled a template is no news
		w.report()
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	if err := w.current.Load().Stop(); err != nil {
		w.t.Errorf("setpointtest: stopping the cluster: %v", err)
	}
	w.tellLeft()
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

// background is a context for what is said after a failure, when that of the test may have ended.
func (w *world) background() context.Context { return context.WithoutCancel(w.ctx) }
