package beside

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/internal/testlink"
)

// Mark is what a cluster held at a moment.
type Mark struct {
	of   *world
	name string
}

// Mark remembers what the cluster holds now. It costs next to nothing, and nothing that is written later is in it.
func (c *Cluster) Mark() *Mark {
	c.t.Helper()
	c.alive()
	answer, err := c.ask(c.ctx, testlink.ClusterLimit, http.MethodPost, "/marks")
	if err != nil {
		c.t.Fatalf("beside: Mark: %v", err)
	}
	return &Mark{c.world, answer.Mark}
}

// Fork starts another cluster from what this one holds now, for a test: the same one, a subtest, or another. Each has
// revisions, watches, control loops and nodes of its own. Programs of Run stay with the cluster that they run on.
func (c *Cluster) Fork(t testing.TB) *Cluster {
	t.Helper()
	c.alive()
	return c.fork(t, c.namespace)
}

func (c *Cluster) fork(t testing.TB, namespace string) *Cluster {
	t.Helper()
	refuseBubbles(t)
	f := begin(t, c.config, c.session, "Fork", "/clusters/"+c.id+"/fork", nil)
	f.namespace = namespace
	return f
}

// Reset takes the cluster back to a Mark of it. Programs of Run end before: they know of a future that never was.
func (c *Cluster) Reset(m *Mark) {
	c.t.Helper()
	c.alive()
	if m.of != c.world {
		c.t.Fatal("beside: Reset: the Mark is of another cluster: take one of this cluster, or use Fork")
	}
	c.should(c.programs.Stop())
	_, err := c.ask(c.ctx, testlink.ClusterLimit, http.MethodPost, "/reset/"+m.name)
	if err == nil {
		err = c.connect()
	}
	if err != nil {
		c.t.Fatalf("beside: Reset: %v", err)
	}
}

// Template is a cluster that is filled once and forked for each test. It runs in the test server until the process ends. If the server
// ends before, the next test fills another one.
type Template struct {
	config Config
	fill   func(c *Cluster)
	mu     sync.Mutex
	// fills counts the clusters that were begun for it; filled is the last one, nil if it could not be filled.
	fills  int
	filled *Cluster
}

// NewTemplate describes a cluster: it is started and filled by the first test that forks it.
//
//	var shop = setpointtest.NewTemplate(setpointtest.Config{CRDs: []string{"../config/crd"}}, func(c *setpointtest.Cluster) {
//		c.Apply("testdata/shop.yaml")
//	})
//
//	func TestScale(t *testing.T) {
//		t.Parallel()
//		c := shop.Fork(t)
func NewTemplate(config Config, fill func(c *Cluster)) *Template {
	return &Template{config: config, fill: fill}
}

// Fork starts a cluster of the template for a test.
func (p *Template) Fork(t testing.TB) *Cluster {
	t.Helper()
	return p.cluster(t).fork(t, defaultNamespace)
}

// cluster is what the template holds, in a server that is there.
func (p *Template) cluster(t testing.TB) *Cluster {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.fills == 0, p.filled != nil && p.filled.session.Over():
		p.refill(t)
	case p.filled == nil:
		t.Fatal("beside: the template could not be filled: see the test that forked it first")
	}
	return p.filled
}

func (p *Template) refill(t testing.TB) {
	t.Helper()
	p.filled = nil
	p.fills++
	config := p.config
	config.Name += fmt.Sprintf(" template %d", p.fills)
	c := Start(t, config)
	if p.fill != nil {
		p.fill(c)
	}
	p.filled = c.kept(t)
}

// kept is a fork that no test ends: it ends with the process.
func (c *Cluster) kept(t testing.TB) *Cluster {
	t.Helper()
	answer, err := c.ask(t.Context(), testlink.ClusterLimit, http.MethodPost, "/fork")
	c.must(err)
	return &Cluster{world: &world{config: c.config, session: c.session, id: answer.Cluster}}
}
