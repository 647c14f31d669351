package beside_test

import (
	"context"
	"testing"

	setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside"
)

// likeGinkgo is a test by the rules of Ginkgo's GinkgoTB: no Context is made in a cleanup, where Ginkgo ends the suite.
type likeGinkgo struct {
	testing.TB
	inCleanup bool
}

func (g *likeGinkgo) Cleanup(f func()) {
	g.TB.Cleanup(func() {
		g.inCleanup = true
		f()
	})
}

func (g *likeGinkgo) Context() context.Context {
	if g.inCleanup {
		g.TB.Errorf("the test asks for a Context in a cleanup")
	}
	return context.WithoutCancel(g.TB.Context()) // Ginkgo's ends after the cleanups
}

// TestLikeGinkgo: clusters end, and answer cleanups, also in a suite of Ginkgo.
func TestLikeGinkgo(t *testing.T) {
	g := &likeGinkgo{TB: t}
	c := setpointtest.Start(g, apiOnly)
	c.Apply(configMap)
	f := c.Fork(g)
	g.Cleanup(func() { f.Delete("configmap/a") })
}
