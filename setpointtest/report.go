package setpointtest

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// lastLines is how much of the trace a failed test shows.
	lastLines = 25
	dumpFile  = "setpoint-objects.yaml"
	traceFile = "setpoint-trace.txt"
)

// Events are the Events about an object, oldest first; of the namespace if target is "".
func (c *Cluster) Events(target string) []corev1.Event {
	c.t.Helper()
	c.alive()
	events, err := c.client().Events(c.ctx, target)
	c.must(err)
	return events
}

// lastWrites is the end of the trace.
func (w *world) lastWrites() []string {
	lines := w.trace()
	return lines[max(0, len(lines)-namedWrites):]
}

// Dump is every object that the test could have made, as YAML: not those that every cluster has.
func (c *Cluster) Dump() string {
	c.t.Helper()
	c.alive()
	text, err := c.dump()
	c.must(err)
	return text
}

func (w *world) dump() (string, error) {
	var b strings.Builder
	made := w.made()
	err := w.eachObject(func(object *unstructured.Unstructured) error {
		if !made[string(object.GetUID())] {
			return nil
		}
		object.SetManagedFields(nil)
		text, err := yaml.Marshal(object.Object)
		b.WriteString("---\n")
		b.Write(text)
		return err
	})
	return b.String(), err
}

// report says what led to a failure: the end of the trace in the test's output, everything in its artifacts.
func (w *world) report() {
	lines := w.trace()
	if artifacts := flag.Lookup("test.artifacts"); artifacts != nil && artifacts.Value.String() == "true" {
		w.keep(lines)
	}
	if len(lines) == 0 {
		return
	}
	shown := lines[max(0, len(lines)-lastLines):]
	w.t.Logf("setpointtest: the last %d of %d changes (all of them, and every object, with go test -artifacts):\n\t%s", len(shown), len(lines), strings.Join(shown, "\n\t"))
}

// keep writes the whole trace and every object into the folder of the test's artifacts.
func (w *world) keep(lines []string) {
	dir := artifactDir(w.t)
	if dir == "" {
		w.t.Logf("setpointtest: no files are kept, because %T names no folder for them, as newer versions of Ginkgo do: log c.Trace() and c.Dump()", w.t)
		return
	}
	keepFile(w.t, "all changes", filepath.Join(dir, traceFile), strings.Join(lines, "\n")+"\n", nil)
	text, err := w.dump()
	keepFile(w.t, "all objects", filepath.Join(dir, dumpFile), text, err)
}

// artifactDir is "" if the test names none: GinkgoTB of Ginkgo v2.27 has the method of an interface that is nil.
func artifactDir(t testing.TB) (dir string) {
	defer func() {
		said := recover()
		if err, is := said.(runtime.Error); said != nil && (!is || !strings.HasSuffix(err.Error(), "nil pointer dereference")) {
			panic(said)
		}
	}()
	return t.ArtifactDir()
}

// keepFile writes what could be read without an error, and says where it is, which Ginkgo does not, or why it is not kept.
func keepFile(t testing.TB, what, path, text string, err error) {
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Logf("setpointtest: %s are not kept: %v", what, err)
		return
	}
	t.Logf("setpointtest: %s are in %s", what, path)
}
