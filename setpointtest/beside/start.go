package beside

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/testclient"
	"github.com/setpoint-io/setpoint/internal/testlink"
)

const (
	// defaultTimeout is how long a test waits for something.
	defaultTimeout   = 30 * time.Second
	defaultNamespace = "default"
)

// Config is a cluster for a test. The zero Config is an API server with all control loops and no nodes. Fields that only
// setpointtest.Config has need the control plane in the test's process.
type Config struct {
	// Name tells the clusters of a test apart that needs several.
	Name string
	// CRDs are files and folders with CustomResourceDefinitions.
	CRDs []string
	// Webhooks are files and folders with webhook configurations. Their clientConfigs, and those of conversions in CRDs, are led to
	// WebhookServer in place of a Service. Other objects in them are applied too, but for Services.
	Webhooks []string
	// Nodes are simulated: their pods become Running and Ready and run nothing. 0: API and control loops only.
	Nodes int
	// Replicas are servers that share a Raft log; 0: 1, at most 5. One can be forked.
	Replicas int
	// Loops are the control loops that run; the zero value is All.
	Loops Loops
	// DisabledAdmission are admission plugins, by upstream's names, that are left out. Without the loop that makes service
	// accounts that is ServiceAccount too, as in envtest.
	DisabledAdmission []string
	// Timeout is how long Eventually and the like wait; 0: 30 seconds.
	Timeout time.Duration
}

// Loops are which control loops run. The zero value is All.
type Loops = testclient.Loops

var (
	// All are those of kube-controller-manager, the scheduler and the API server.
	All = testclient.All
	// APIOnly are those of upstream's API server alone, as in envtest: nothing acts on Deployments, owners that are
	// gone, or namespaces that end.
	APIOnly = testclient.APIOnly
)

// Only are those of upstream's API server and these, by the names that their events and logs bear, such
// as "garbage-collector-controller", and "scheduler".
func Only(names ...string) Loops { return testclient.Only(names...) }

// shared is what the tests of a process share: the connection to the test server, and which clusters they have.
var shared struct {
	link     testlink.Link
	clusters sync.Map // started to struct{}
}

type started struct {
	t    testing.TB
	name string
}

// Start starts a cluster in the test server that ends with the test.
func Start(t testing.TB, config Config) *Cluster {
	t.Helper()
	key := started{t, config.Name}
	if _, twice := shared.clusters.LoadOrStore(key, struct{}{}); twice {
		t.Fatalf("beside: this test has a cluster named %q already: use Fork for another future of it, or give each Config a Name", config.Name)
	}
	t.Cleanup(func() { shared.clusters.Delete(key) })
	refuseBubbles(t)
	session, err := shared.link.Session(t.Context(), t.Logf)
	if err != nil {
		t.Fatalf("beside: Start: %v", err)
	}
	c := begin(t, config, session, "Start", "/clusters", config.asked(session.Name))
	c.install()
	return c
}

// asked is the Config as the server takes it.
func (c *Config) asked(session string) testlink.Clusters {
	loops, apiOnly := testclient.Chosen(c.Loops)
	return testlink.Clusters{
		Nodes: c.Nodes, Replicas: c.Replicas, APIOnly: apiOnly, Loops: loops, Session: session,
		DisabledAdmission: testclient.DisabledAdmission(c.Loops, c.DisabledAdmission),
	}
}

// begin asks the server for a cluster that ends with the test.
func begin(t testing.TB, config Config, session *testlink.Session, who, path string, body any) *Cluster {
	t.Helper()
	ctx := t.Context()
	answer, err := session.Ask(ctx, testlink.ClusterLimit, http.MethodPost, path, body)
	if err != nil {
		t.Fatalf("beside: %s: %v", who, err)
	}
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	w := &world{t: t, ctx: ctx, config: config, session: session, id: answer.Cluster}
	t.Cleanup(w.end)
	if err := w.connect(); err != nil {
		t.Fatalf("beside: %s: %v", who, err)
	}
	return &Cluster{world: w, namespace: defaultNamespace, timeout: config.Timeout}
}

// refuseBubbles: a bubble's time stands still while it waits for another process.
func refuseBubbles(t testing.TB) {
	t.Helper()
	if inBubble() {
		t.Fatal("beside: a bubble of testing/synctest cannot wait for another process: import setpointtest in place of setpointtest/beside, or let time pass with Advance outside of the bubble")
	}
}

// inBubble reports whether the test runs in a testing/synctest bubble: only there may a goroutine wait for the others.
func inBubble() (in bool) {
	defer func() {
		if recover() != nil {
			in = false
		}
	}()
	synctest.Wait()
	return true
}
