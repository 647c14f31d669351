package operators

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/setpoint-io/setpoint/setpointtest"
)

const (
	// playsGinkgo marks the process that plays the suite, one of whose specs fails.
	playsGinkgo = "SETPOINTTEST_PLAYS_GINKGO"
	note        = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
)

var notes = setpointtest.NewTemplate(setpointtest.Config{Loops: setpointtest.APIOnly}, func(c *setpointtest.Cluster) { c.Apply(note) })

var _ = ginkgo.Describe("a cluster", func() {
	var c *setpointtest.Cluster
	ginkgo.BeforeEach(func() { c = notes.Fork(ginkgo.GinkgoTB()) })

	ginkgo.It("takes changes back", func() {
		mark := c.Mark()
		c.Delete("configmap/a")
		c.Reset(mark)
		c.Eventually("configmap/a")
	})
	ginkgo.It("answers cleanups", func() {
		ginkgo.DeferCleanup(func() { c.Delete("configmap/a") })
		gomega.Expect(c.Fork(ginkgo.GinkgoTB()).Get("configmap/a")).NotTo(gomega.BeNil())
	})
	ginkgo.It("fails", func() {
		c.Delete("configmap/a")
		c.Within(time.Millisecond).Eventually("configmap/a")
	})
})

// TestGinkgo: a failed spec fails at its line and says what led to it, in its cleanup; the others pass, and the suite goes on.
func TestGinkgo(t *testing.T) {
	if os.Getenv(playsGinkgo) != "" {
		gomega.RegisterFailHandler(ginkgo.Fail)
		ginkgo.RunSpecs(t, "setpointtest")
		return
	}
	folder := t.TempDir()
	alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGinkgo$", "-test.artifacts", "-test.outputdir="+folder, "-ginkgo.no-color")
	alone.Env = append(os.Environ(), playsGinkgo+"=yes", "TMPDIR="+folder)
	said, err := alone.CombinedOutput()
	for _, says := range []string{
		`setpointtest: configmap/a is not there after 1ms: there is no such object\n\s*In \[It\] at: .*ginkgo_test\.go:\d+`,
		`delete configmaps default/a by admin`,
		`setpointtest: all changes are in \S+/setpoint-trace.txt`,
		`setpointtest: all objects are in \S+/setpoint-objects.yaml`,
		`Ran 3 of 3 Specs`,
		`2 Passed \| 1 Failed`,
	} {
		if err == nil || !regexp.MustCompile(says).Match(said) {
			t.Errorf("%v: nothing says %q in\n%s", err, says, said)
		}
	}
	kept, err := filepath.Glob(filepath.Join(folder, "*", "setpoint-*"))
	must(t, err)
	if len(kept) != 2 || bytes.Contains(said, []byte("create configmaps default/a")) {
		t.Errorf("kept are %v, not a trace and objects, or it tells how the template was filled:\n%s", kept, said)
	}
}
