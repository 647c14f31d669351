package setpointtest

import (
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint"
)

// Mark is what a cluster held at a moment.
type Mark struct {
	image *setpoint.Image
	taken time.Time
}

// Mark remembers what the cluster holds now. It costs next to nothing, and nothing that is written later is in it.
func (c *Cluster) Mark() *Mark {
	c.t.Helper()
	c.alive()
	image, err := c.current.Load().Image(c.ctx)
	if err != nil {
		c.t.Fatalf("setpointtest: Mark: %v", err)
	}
	return &Mark{image, time.Now()}
}

// Fork starts another cluster from what this one holds now, for a test: the same one, a subtest, or another. Each has
// revisions, watches, control loops and nodes of its own. Programs of Run stay with the cluster that they run on.
func (c *Cluster) Fork(t testing.TB) *Cluster {
	t.Helper()
	return c.Mark().fork(t, c.config, c.namespace)
}

func (m *Mark) fork(t testing.TB, config Config, namespace string) *Cluster {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), config: config, bubble: inBubble()}
	if behind := time.Until(m.taken); w.bubble && behind > 0 {
		time.Sleep(behind) // objects that were made in a later time than this bubble's would be young for years
	}
	cluster, err := m.image.Intercepted(w.ofLoop).Start(w.ctx)
	f := w.begin(cluster, err, "Fork")
	f.namespace = namespace
	return f
}

// Reset takes the cluster back to a Mark of it. Programs of Run end before: they know of a future that never was.
func (c *Cluster) Reset(m *Mark) {
	c.t.Helper()
	c.alive()
	c.should(c.programs.Stop())
	former := c.current.Load()
	cluster, err := m.image.Intercepted(c.ofLoop).Start(c.ctx)
	if err != nil {
		c.t.Fatalf("setpointtest: Reset: %v", err)
	}
	c.current.Store(cluster)
	c.must(former.Stop())
	if err := cluster.Ready(c.ctx); err != nil {
		c.t.Fatalf("setpointtest: Reset: %v", err)
	}
	c.start = cluster.Revision()
}

// Template is a cluster that is filled once and forked for each test. Between the tests nothing of it runs.
type Template struct {
	config Config
	fill   func(c *Cluster)
	once   sync.Once
	mark   *Mark
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
	p.once.Do(func() {
		t.Helper()
		config := p.config
		config.Name += " template"
		c := Start(t, config)
		if p.fill != nil {
			p.fill(c)
		}
		p.mark = c.Mark()
		c.endEarly()
	})
	if p.mark == nil {
		t.Fatal("setpointtest: the template could not be filled: see the test that forked it first")
	}
	return p.mark.fork(t, p.config, defaultNamespace)
}

// endEarly ends a cluster that nobody needs any more, unless programs run on it.
func (c *Cluster) endEarly() {
	c.t.Helper()
	c.mu.Lock()
	c.ended = !c.programs.Any()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		c.must(c.current.Load().Stop())
	}
}
