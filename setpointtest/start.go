package setpointtest

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/testclient"
)

const (
	// defaultTimeout is how long a test waits for something, and inBubble the same where time costs nothing.
	defaultTimeout   = 30 * time.Second
	defaultInBubble  = time.Hour
	defaultNamespace = "default"
)

// Config is a cluster for a test. The zero Config is an API server with all control loops and no nodes.
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
	// DataDir keeps the cluster on disk, for the next one with the same DataDir; "": in memory, which is faster, can be
	// forked, crash, and run in a bubble.
	DataDir string
	// Replicas are servers that share a Raft log; 0: 1, at most 5. Several can crash (CrashServer), and one can
	// be forked.
	Replicas int
	// Loops are the control loops that run; the zero value is All.
	Loops Loops
	// DisabledAdmission are admission plugins, by upstream's names, that are left out. Without the loop that makes service
	// accounts that is ServiceAccount too, as in envtest.
	DisabledAdmission []string
	// Timeout is how long Eventually and the like wait; 0: 30 seconds, in a bubble an hour of its time.
	Timeout time.Duration
	// Logger takes what the control plane logs; nil: nothing is logged.
	Logger *slog.Logger
}

// clusters are those of tests that run, so that a test does not start one twice by mistake.
var clusters sync.Map // started to struct{}

type started struct {
	t    testing.TB
	name string
}

// Start starts a cluster in memory that ends with the test.
func Start(t testing.TB, config Config) *Cluster {
	t.Helper()
	w := newWorld(t, config)
	if w.bubble && config.DataDir != "" {
		t.Fatal("setpointtest: a bubble cannot wait for a disk: leave Config.DataDir empty in synctest.Test")
	}
	loops, apiOnly := testclient.Chosen(config.Loops)
	cluster, err := setpoint.Start(w.ctx, setpoint.Config{
		InMemory: config.DataDir == "", DataDir: config.DataDir, Replicas: config.Replicas, SimulatedNodes: config.Nodes,
		APIOnly: apiOnly, Loops: loops, Intercept: w.ofLoop,
		DisabledAdmission: testclient.DisabledAdmission(config.Loops, config.DisabledAdmission), Logger: config.Logger,
	})
	c := w.begin(cluster, err, "Start")
	c.install()
	return c
}

// newWorld prepares what a cluster of the test is wrapped in.
func newWorld(t testing.TB, config Config) *world {
	t.Helper()
	key := started{t, config.Name}
	if _, twice := clusters.LoadOrStore(key, struct{}{}); twice {
		t.Fatalf("setpointtest: this test has a cluster named %q already: use Fork for another future of it, or give each Config a Name", config.Name)
	}
	t.Cleanup(func() { clusters.Delete(key) })
	return &world{t: t, ctx: t.Context(), config: config, bubble: inBubble()}
}

// timeout is how long the test waits.
func (w *world) timeout() time.Duration {
	switch {
	case w.config.Timeout > 0:
		return w.config.Timeout
	case w.bubble:
		return defaultInBubble
	}
	return defaultTimeout
}

// begin waits until the cluster serves; it ends with the test.
func (w *world) begin(cluster *setpoint.Cluster, err error, who string) *Cluster {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("setpointtest: %s: %v", who, err)
	}
	w.current.Store(cluster)
	w.t.Cleanup(w.end)
	if w.bubble {
		bubbles.add(w.t)
	}
	if err := cluster.Ready(w.ctx); err != nil {
		w.t.Fatalf("setpointtest: %s: %v", who, err)
	}
	w.start = cluster.Revision()
	return &Cluster{world: w, namespace: defaultNamespace, timeout: w.timeout(), user: admin()}
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
