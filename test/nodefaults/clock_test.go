package nodefaults

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/test/clockskew"
)

// clockJumps: the machine's clock is set a day ahead, back, and a day behind, as the agent sees it. No pod is restarted or ended for
// that, the bystander is probed on, and new pods start. Exec goes on too, unless it is before the cluster began: servers show the agent
// certificates that are not valid yet then.
func clockJumps(t *testing.T, n *node) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the code that sets the clock of one process is for amd64")
	}
	n.create(t, newPod("runs"))
	n.awaitReady(t, "runs")
	for i, offset := range []time.Duration{24 * time.Hour, 0, -24 * time.Hour, 0} {
		check(t, clockskew.Set(n.agent.Process.Pid, offset))
		name := fmt.Sprintf("later-%d", i)
		n.create(t, newPod(name))
		n.awaitReady(t, name, "runs")
		if offset >= 0 {
			n.mustExec(t, name)
		}
		n.bystander.awaitProbes(t)
		n.delete(t, name)
		n.awaitDeleted(t, name)
	}
	n.notRestarted(t, "runs")
}
