package setpoint

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/admin"
)

// TestALessonKeepsWhatDidNotEnd: a server whose store may be open still is not started beside itself, however often that is ordered.
func TestALessonKeepsWhatDidNotEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	hangs := errors.New("it hangs")
	ended := make(chan error, 1)
	ended <- hangs
	c := &Cluster{}
	c.replicas.servers = []*replica{{config: server.Config{Name: "server-1", Listener: listener}, Server: &server.Server{}, ended: ended}}
	for range 2 {
		if err := c.startStopped(t.Context(), "server-1"); !errors.Is(err, hangs) || !errors.Is(err, errBadEnd) {
			t.Errorf("it is started: %v", err)
		}
	}
	if err := c.replicas.awaitCrashed(); !errors.Is(err, hangs) {
		t.Errorf("the end of the cluster says nothing of it: %v", err)
	}
}

// TestAFailureBesideAnother: whoever tells of one does not wait until somebody reads the other.
func TestAFailureBesideAnother(t *testing.T) {
	c := &Cluster{failed: make(chan error, 1)}
	first := errors.New("first")
	c.fail(nil)
	c.fail(first)
	c.fail(errors.New("second"))
	if err := c.Wait(t.Context()); !errors.Is(err, first) {
		t.Error(err)
	}
}

// TestStopEndsLessons: it waits for the one that is carried out, which ends early, and no other begins.
func TestStopEndsLessons(t *testing.T) {
	c, err := Start(t.Context(), Config{InMemory: true, APIOnly: true, Replicas: 3, Lessons: true})
	if err != nil {
		t.Fatal(err)
	}
	begun, order := make(chan struct{}), make(chan error, 1)
	go func() {
		order <- c.lessons.do(context.Background(), func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-begun
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if err := <-order; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"kill":    c.lessons.Kill(t.Context(), admin.ServerPart, "server-2"),
		"heal":    c.lessons.Heal(t.Context(), admin.ServerPart, "server-2"),
		"advance": c.lessons.Advance(t.Context(), time.Second),
		"crash":   c.CrashServer("server-2"),
	} {
		if !errors.Is(err, errStops) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNobodyWatchesAServerThatIsKilled: kill and heal, again and again, leave nothing behind.
func TestNobodyWatchesAServerThatIsKilled(t *testing.T) {
	c, err := Start(t.Context(), Config{DataDir: t.TempDir(), APIOnly: true, Replicas: 3, Lessons: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(
			c.lessons.Kill(t.Context(), admin.ServerPart, "server-2"), c.lessons.Heal(t.Context(), admin.ServerPart, "server-2"),
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.lessons.Kill(t.Context(), admin.ServerPart, "server-2"); err != nil {
		t.Fatal(err)
	}
	c.watchers.Wait() // hangs if one is left
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// TestAServerThatNodesReadIsNotCrashed: the simulated nodes of a backup's cluster would see nothing any more.
func TestAServerThatNodesReadIsNotCrashed(t *testing.T) {
	c := &Cluster{config: Config{InMemory: true}, played: &power{}}
	if err := c.CrashServer("server-1"); !errors.Is(err, errReadsServer) {
		t.Errorf("got %v", err)
	}
}
