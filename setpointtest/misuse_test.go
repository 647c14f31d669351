package setpointtest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// recorder is a test whose failures are looked at.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	helpers map[string]bool
	ends    []func()
	said    []string
	// line is where the last failure stands, by the rule of the testing package: the nearest caller that is no helper.
	line string
}

func (r *recorder) Helper() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.helpers == nil {
		r.helpers = map[string]bool{}
	}
	r.helpers[frames()[0].Function] = true
}

// frames are the callers of the method that calls this.
func frames() (all []runtime.Frame) {
	var counters [50]uintptr
	found := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = found.Next()
		all = append(all, frame)
	}
	return all
}

func (r *recorder) Cleanup(f func())    { r.ends = append(r.ends, f) }
func (r *recorder) Failed() bool        { return len(r.said) > 0 }
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) { r.fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) { r.fatal(fmt.Sprint(args...)) }

func (r *recorder) fatal(text string) {
	for _, frame := range frames()[1:] {
		if !r.helpers[frame.Function] {
			r.line = filepath.Base(frame.File)
			break
		}
	}
	r.Errorf("%s", text)
	runtime.Goexit()
}

// failure runs a test that must fail, at a line of the caller's file, and returns what it said.
func failure(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	_, file, _, _ := runtime.Caller(1)
	defer func() {
		if r.line != "" && r.line != filepath.Base(file) {
			t.Errorf("the failure stands in %s", r.line)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	for i := range r.ends {
		r.ends[len(r.ends)-1-i]()
	}
	return strings.Join(r.said, "\n")
}

// TestMisuse: each mistake fails the test with one sentence that says what to do.
func TestMisuse(t *testing.T) {
	start := func(t testing.TB) *setpointtest.Cluster {
		return setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly, Timeout: 50 * time.Millisecond})
	}
	for name, tc := range map[string]struct {
		test func(t testing.TB)
		says string
	}{
		"no CRD folder": {func(t testing.TB) { setpointtest.Start(t, setpointtest.Config{CRDs: []string{"../nowhere"}}) },
			`Config.CRDs: there is no file or folder "../nowhere": paths are relative to the folder of the test`},
		"no such loop": {func(t testing.TB) {
			setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.Only("deployments")})
		},
			`there is no control loop "deployments": they are apiservice-controller, attachdetach-controller`},
		"fork of several": {func(t testing.TB) {
			setpointtest.Start(t, setpointtest.Config{Replicas: 3, Loops: setpointtest.APIOnly}).Mark()
		},
			"a cluster of several replicas cannot be forked: set Config.Replicas to 1"},
		"no such server":   {func(t testing.TB) { start(t).CrashServer("server-9") }, `there is no server "server-9": they are named server-1 to server-1`},
		"runs already":     {func(t testing.TB) { start(t).StartServer("server-1") }, "it runs: server-1"},
		"too many servers": {func(t testing.TB) { setpointtest.Start(t, setpointtest.Config{Replicas: 6}) }, "--servers must be 1 to 5"},
		"two starts":       {func(t testing.TB) { start(t); start(t) }, "this test has a cluster named \"\" already: use Fork"},
		"back in time":     {func(t testing.TB) { start(t).Advance(-time.Hour) }, "Advance(-1h0m0s): time does not go back"},
		"advance a disk": {func(t testing.TB) {
			setpointtest.Start(t, setpointtest.Config{DataDir: t.TempDir(), Loops: setpointtest.APIOnly}).Advance(time.Hour)
		}, "a cluster on disk has the process's time: leave Config.DataDir empty"},
		"no such object":   {func(t testing.TB) { start(t).Eventually("deployment/web", setpointtest.Available) }, "deployment/web is not Available after 50ms: there is no such object"},
		"no such kind":     {func(t testing.TB) { start(t).Eventually("shop/blue", setpointtest.Ready) }, `the cluster does not serve "shop": is its CRD missing in Config.CRDs?`},
		"no target":        {func(t testing.TB) { start(t).Eventually("web", setpointtest.Ready) }, "a target is KIND/NAME"},
		"apply a bad kind": {func(t testing.TB) { start(t).Apply(shop) }, `Apply: Shop blue: the cluster does not serve "Shop.example.com"`},
		"no effect":        {func(t testing.TB) { start(t).Inject(setpointtest.Fault{}) }, "a Fault needs an Effect"},
		"no such node":     {func(t testing.TB) { start(t).KillNode("sim-1") }, `KillNode: there is no node "sim-1": Config.Nodes is 0`},
		"no webhooks":      {func(t testing.TB) { start(t).WebhookServer() }, "WebhookServer needs Config.Webhooks"},
		"run fails": {func(t testing.TB) {
			start(t).Run(setpointtest.RunnableFunc(func(context.Context) error { return errors.New("broken") }))
		}, "misuse_test.go:" /* its line */},
		"after the end": {func(t testing.TB) {
			var c *setpointtest.Cluster
			t.Cleanup(func() {
				defer func() { t.Errorf("%v", recover()) }()
				c.Get("node/a")
			})
			c = start(t)
		}, "is used after the end of that test: start or fork one in the test that uses it"},
	} {
		t.Run(name, func(t *testing.T) {
			if said := failure(t, tc.test); !strings.Contains(said, tc.says) {
				t.Errorf("it said %q\nand not    %q", said, tc.says)
			}
		})
	}
}

// TestMisuseInABubble is the rest, which needs fake time.
func TestMisuseInABubble(t *testing.T) {
	for name, tc := range map[string]struct {
		test func(t testing.TB, c *setpointtest.Cluster)
		says string
	}{
		"back in time": {func(t testing.TB, c *setpointtest.Cluster) { c.Advance(-time.Hour) }, "Advance(-1h0m0s): time does not go back"},
		"a disk": {func(t testing.TB, _ *setpointtest.Cluster) {
			setpointtest.Start(t, setpointtest.Config{Name: "on disk", DataDir: t.TempDir()})
		}, "a bubble cannot wait for a disk"},
		"a port": {func(t testing.TB, c *setpointtest.Cluster) { c.Kubeconfig() }, "a bubble cannot wait for a port"},
		"never returns": {func(t testing.TB, c *setpointtest.Cluster) {
			c.Run(setpointtest.RunnableFunc(func(context.Context) error { time.Sleep(time.Minute); return nil }))
		}, "has not returned 10s after its context ended"},
		"never at rest": {func(t testing.TB, c *setpointtest.Cluster) {
			maps, n := c.Kubernetes().CoreV1().ConfigMaps("default"), 0
			c.Run(setpointtest.RunnableFunc(func(ctx context.Context) error {
				for ctx.Err() == nil {
					n++
					object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("busy-", n)}}
					if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
						return err
					}
					time.Sleep(time.Second)
				}
				return nil
			}))
			c.Within(time.Minute).NoWritesWhenQuiet()
		}, "the cluster does not come to rest within 1m0s; last written:"},
		"writes that change nothing": {func(t testing.TB, c *setpointtest.Cluster) {
			namespaces := c.Kubernetes().CoreV1().Namespaces()
			c.Run(setpointtest.RunnableFunc(func(ctx context.Context) error {
				for ctx.Err() == nil {
					namespace, err := namespaces.Get(ctx, "default", metav1.GetOptions{})
					if err == nil {
						_, err = namespaces.Update(ctx, namespace, metav1.UpdateOptions{})
					}
					if err != nil {
						return err
					}
					time.Sleep(10 * time.Minute)
				}
				return nil
			}))
			c.NoWritesWhenQuiet()
		}, "writes within 30m0s, while nothing changed: let the reconciler compare before it writes\n\tupdate namespaces default/default by admin"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := failure(t, func(t testing.TB) {
					tc.test(t, setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly}))
				})
				time.Sleep(time.Hour) // whoever did not return does
				if !strings.Contains(said, tc.says) {
					t.Errorf("it said %q\nand not    %q", said, tc.says)
				}
			})
		})
	}
}

// TestLine: failures stand at the line of the test.
func TestLine(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	said := failure(t, func(t testing.TB) {
		setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly}).
			Run(setpointtest.RunnableFunc(func(context.Context) error { return errors.New("broken") }))
	})
	if !strings.Contains(said, filepath.Base(file)) || !strings.Contains(said, "broken") {
		t.Error(said)
	}
}
