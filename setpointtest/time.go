package setpointtest

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

const (
	// quiet is how long nothing must be written until a cluster counts as at rest; quietInBubble the same where time
	// costs nothing. Both are longer than what a queue's back-off begins with.
	quiet         = 200 * time.Millisecond
	quietInBubble = 30 * time.Second
	// watched is how long NoWritesWhenQuiet looks on.
	watched         = 500 * time.Millisecond
	watchedInBubble = 30 * time.Minute
	// namedWrites is how many writes a failure names.
	namedWrites = 5
)

// Advance lets time pass. Inside of synctest.Test it passes for everything in the test's bubble, and Advance returns when
// all that it brought on is done. Outside it passes for this cluster alone (objects, tokens, control loops and nodes), in
// steps of at most 2 s, each of which ends when servers, loops and nodes are at rest. Programs of Run go by the process's
// time there, unless they go by Clock.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	c.alive()
	switch {
	case d < 0:
		c.t.Fatalf("setpointtest: Advance(%v): time does not go back; fork before, and advance the fork", d)
	case c.bubble:
		time.Sleep(d)
		synctest.Wait()
	case c.config.DataDir != "":
		c.t.Fatal("setpointtest: a cluster on disk has the process's time: leave Config.DataDir empty to Advance another one")
	default:
		c.must(c.current.Load().Advance(c.ctx, d))
	}
}

// Clock is the cluster's time, for a program under test that takes a clock, so that it goes by Advance. A cluster that was
// Reset has another one.
func (c *Cluster) Clock() clock.WithTicker {
	c.t.Helper()
	c.alive()
	return c.current.Load().Clock()
}

// Wait returns when everybody has done what there is to do now: in a bubble when all wait, outside when nobody has
// written for a while. Heartbeats do not count.
func (c *Cluster) Wait() {
	c.t.Helper()
	c.alive()
	if c.bubble {
		synctest.Wait()
		return
	}
	c.rest(quiet)
}

// rest waits until nothing has been written for a while.
func (c *Cluster) rest(pause time.Duration) {
	c.t.Helper()
	deadline, since, at := time.Now().Add(c.timeout), time.Now(), c.current.Load().Revision()
	for time.Since(since) < pause {
		time.Sleep(min(pause/8, testclient.PollMax))
		if next := c.current.Load().Revision(); next != at {
			if c.moved(at) {
				since = time.Now()
			}
			at = next
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("setpointtest: the cluster does not come to rest within %v; last written:\n\t%s", c.timeout, strings.Join(c.lastWrites(), "\n\t"))
		}
	}
}

// moved reports whether anything but heartbeats was written after a revision.
func (w *world) moved(after uint64) bool {
	changes, err := w.current.Load().Changes(after)
	if err != nil {
		return true
	}
	for _, change := range changes {
		if !isHeartbeat(change) {
			return true
		}
	}
	return false
}

// NoWritesWhenQuiet waits until the cluster is at rest, and fails the test if the program under test goes on writing:
// a reconciler at rest is silent. It looks at what is asked, so that writes which change nothing count too.
func (c *Cluster) NoWritesWhenQuiet() {
	c.t.Helper()
	c.alive()
	pause, look := quiet, watched
	if c.bubble {
		pause, look = quietInBubble, watchedInBubble
	}
	c.rest(pause)
	since := time.Now()
	time.Sleep(look)
	asks := c.asked.since(since)
	if len(asks) == 0 {
		return
	}
	lines := make([]string, 0, namedWrites+1)
	for _, ask := range asks[:min(len(asks), namedWrites)] {
		lines = append(lines, ask.String())
	}
	if more := len(asks) - namedWrites; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	c.t.Fatalf("setpointtest: %d writes within %v, while nothing changed: let the reconciler compare before it writes\n\t%s", len(asks), look, strings.Join(lines, "\n\t"))
}
