//go:build versions

package machines

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/test/everykind"
)

// oldBinariesEnv are the binaries of older releases, from the oldest on, with colons between them; test/versions.sh builds them.
const oldBinariesEnv = "SETPOINT_OLD_BINARIES"

// TestVersions rolls three machines from each older release to this one, back, and forward again, one server after the other and then
// the agents, under requests, with running pods and an object of each kind that the older release serves, which all are what they were
// after each roll. Going back is possible since a server holds the feature level.
func TestVersions(t *testing.T) {
	if err := Missing(); err != nil {
		t.Fatal("needs root:", err)
	}
	for _, old := range filepath.SplitList(os.Getenv(oldBinariesEnv)) {
		t.Run(filepath.Base(filepath.Dir(old)), func(t *testing.T) { rollFrom(t, old, binary(t)) })
	}
}

// hold keeps the way back open, whatever level has been reached.
const hold = "--hold-feature-level=1"

func rollFrom(t *testing.T, old, today string) {
	c := New(t, old)
	Until(t, patience, c.nodesNotReady)
	c.deploy(t, "web", 3)
	stored := c.storeEveryKind(t)
	before, load := c.containers(t, "web"), startLoad(t, c.Clients)
	for _, step := range []struct {
		what, binary string
		flags        []string
	}{
		{"forward, held", today, []string{hold}}, {"back", old, nil}, {"forward", today, nil},
	} {
		start := time.Now()
		c.roll(t, step.binary, step.flags...)
		if after := c.containers(t, "web"); !maps.Equal(before, after) {
			t.Errorf("%s: containers and restarts were %v and are %v", step.what, before, after)
		}
		for _, client := range c.Clients {
			for _, change := range stored.Changed(t.Context(), client.Discovery()) {
				t.Errorf("%s: %s", step.what, change)
			}
		}
		t.Logf("%s: three servers and three agents in %.1f s", step.what, time.Since(start).Seconds())
	}
	if err := stored.Remove(t.Context(), c.Clients[0].Discovery()); err != nil {
		t.Error(err)
	}
	c.deploy(t, "after", 3)
	load.end(t)
	c.agree(t)
	t.Log(load)
}

// storeEveryKind stores an object of each kind that the older release serves, and waits until the controllers leave them alone.
func (c *Cluster) storeEveryKind(t *testing.T) everykind.Stored {
	t.Helper()
	client := c.Clients[0].Discovery()
	stored, err := everykind.Store(t.Context(), client, "../..")
	if err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	Until(t, patience, func(ctx context.Context) string {
		changed := stored.Changed(ctx, client)
		if len(changed) > 0 {
			since = time.Now()
			if err := stored.Look(ctx, client); err != nil {
				return err.Error()
			}
		}
		if time.Since(since) < quietFor {
			return fmt.Sprintf("they change: %v", changed)
		}
		return ""
	})
	t.Logf("%d kinds are stored", len(stored))
	return stored
}

// quietFor is how long all objects stay the same before anything is rolled.
const quietFor = 5 * time.Second

// roll gives all servers, one after the other, and then all agents another binary.
func (c *Cluster) roll(t *testing.T, binary string, serverFlags ...string) {
	t.Helper()
	for i, m := range c.Machines {
		if err := m.Upgrade("server", binary, serverFlags...); err != nil {
			t.Fatal(err)
		}
		Until(t, patience, func(ctx context.Context) string {
			text, err := c.Clients[i].Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			if err != nil {
				return fmt.Sprintf("%s is not ready: %v %s", m.Server, err, text)
			}
			return ""
		})
	}
	for _, m := range c.Machines {
		if err := m.Upgrade("agent", binary); err != nil {
			t.Fatal(err)
		}
	}
	Until(t, patience, c.nodesNotReady)
}

// agree: all servers come to one revision with one state, and nobody is needed.
func (c *Cluster) agree(t *testing.T) {
	t.Helper()
	Until(t, patience, func(context.Context) string {
		out, err := c.Machines[0].Command(binary(t), "cluster", "status", "--kubeconfig", "/etc/setpoint/admin.kubeconfig", "-o", "json")
		if err != nil {
			return fmt.Sprintf("cluster status: %v %s", err, out)
		}
		hashes := map[string]int{}
		for line := range strings.Lines(out) {
			if strings.Contains(line, `"stateHash":`) || strings.Contains(line, `"stateRevision":`) {
				hashes[line]++
			}
		}
		if len(hashes) != 2 {
			return fmt.Sprintf("not one state: %v", hashes)
		}
		return ""
	})
}
