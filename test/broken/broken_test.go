package broken

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestMain takes away what sleeps after errors by the time of the last one, which is that of another bubble: it would sleep for years.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// way is how an object is broken.
type way struct {
	name string
	// kind is the broken object's, if it has a namespace.
	kind kind
	// plant makes the broken object.
	plant func(t *testing.T, c *setpointtest.Cluster)
	// named fails unless somebody names it; logged is what a line of the log names.
	named  func(t *testing.T, c *setpointtest.Cluster)
	logged string
	// holdsNamespaces is what the condition of a namespace says that must not end, because nobody knows what is in it.
	holdsNamespaces string
}

// settling is longer than the loops need to find the broken object, and to fail a few times.
const settling = 2 * time.Minute

// patience is how long the others may take.
const patience = 2 * time.Minute

// TestBrokenObjects plays every way to be broken beside everything that others do.
func TestBrokenObjects(t *testing.T) {
	for _, w := range ways {
		t.Run(strings.ReplaceAll(w.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &record{}
				c := setpointtest.Start(t, w.config(log))
				c.Advance(time.Minute) // until the node is ready
				begin(c)
				c.Advance(time.Second) // their service accounts
				w.plant(t, c)
				c.Advance(settling)
				w.play(t, c, log, 0)
				fork := c.Fork(t) // its loops begin anew
				fork.Advance(settling)
				w.play(t, fork, log, 1)
			})
		})
	}
}

func (w way) config(log *record) setpointtest.Config {
	return setpointtest.Config{Nodes: 1, Timeout: patience, Logger: slog.New(slog.NewTextHandler(log, nil))}
}

// begin makes the namespaces.
func begin(c *setpointtest.Cluster) { c.Apply(namespace(poor), namespace(beside)) }

// play plays all others, and looks whether somebody names the broken object.
func (w way) play(t *testing.T, c *setpointtest.Cluster, log *record, round int) {
	t.Helper()
	for _, other := range others {
		before := t.Failed()
		other.play(t, c, w, round)
		if t.Failed() && !before {
			t.Errorf("round %d: it is not so that %s", round, other.name)
		}
	}
	if w.named != nil && round == 0 {
		w.named(t, c)
	}
	if !log.says(w.logged) {
		t.Errorf("no line of the log says %s", w.logged)
	}
}

// record is a log.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) says(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.text.String(), text)
}

// says reports whether an object has a condition whose reason or message has the text.
func says(object *unstructured.Unstructured, conditionType, text string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		c, is := item.(map[string]any)
		if !is || c["type"] != conditionType {
			continue
		}
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		return strings.Contains(reason+" "+message, text)
	}
	return false
}
