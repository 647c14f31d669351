package setpointtest_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// playedAlone is the name of the hopeless test that this process plays.
const playedAlone = "SETPOINTTEST_HOPELESS"

// hopeless are tests of bubbles that never end by themselves.
var hopeless = map[string]struct {
	test func(t *testing.T, c *setpointtest.Cluster)
	says []string
}{
	"a listener": {func(t *testing.T, c *setpointtest.Cluster) {
		c.Run(setpointtest.RunnableFunc(func(ctx context.Context) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			_, err = l.Accept()
			return err
		}))
		c.Advance(time.Hour)
	}, []string{"the time of the bubble of TestHopeless has stood still for 2s, because this waits for the network (the process is listening at 127.0.0.1:",
		"setpointtest_test.init.func", "bubbles_test.go:", "let the program open no port and no connection in a bubble"}},
	"a goroutine that is left": {func(*testing.T, *setpointtest.Cluster) {
		go func() {
			for range time.NewTicker(time.Second).C {
			}
		}()
	}, []string{"after the end of the test these run on; let them end with t.Context(), or a bubble never ends:", "[chan receive (durable)] in github.com", "bubbles_test.go:"}},
}

// TestHopeless is played by a process of its own, which it ends.
func TestHopeless(t *testing.T) {
	played, alone := hopeless[os.Getenv(playedAlone)]
	if !alone {
		return // TestNothingHangsSilently plays it
	}
	synctest.Test(t, func(t *testing.T) {
		played.test(t, setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly}))
	})
}

// TestNothingHangsSilently: a bubble whose time stands still, and one that does not end, say why within seconds.
func TestNothingHangsSilently(t *testing.T) {
	for name, tc := range hopeless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHopeless$", "-test.timeout=5m")
			alone.Env = append(os.Environ(), playedAlone+"="+name, "SETPOINTTEST_STANDSTILL=2s")
			out, err := alone.CombinedOutput()
			if err == nil {
				t.Error("it passed")
			}
			if strings.Contains(string(out), "in testing/synctest.Test at") {
				t.Errorf("it names the goroutine of the test itself:\n%s", out)
			}
			for _, says := range tc.says {
				if !strings.Contains(string(out), says) {
					t.Errorf("it did not say %q but\n%s", says, out)
				}
			}
		})
	}
}

// TestWhatCachesWaitFor: a manager that never becomes ready says what its caches asked for in vain.
func TestWhatCachesWaitFor(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  func(t testing.TB, c *setpointtest.Cluster)
		says string
	}{
		"no CRD": {func(t testing.TB, c *setpointtest.Cluster) {
			_, _ = c.Kubernetes().Discovery().ServerResourcesForGroupVersion("example.com/v1")
		}, "its caches wait for\n\t/apis/example.com/v1: 404 Not Found: is a CRD of example.com missing in Config.CRDs?"},
		"no right": {func(t testing.TB, c *setpointtest.Cluster) {
			_, _ = c.As("eve").Kubernetes().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		}, "list secrets by eve: 403 Forbidden: does a role allow it?"},
		"held": {func(_ testing.TB, c *setpointtest.Cluster) { c.HoldWatches("pods") }, "watches are held by HoldWatches: pods"},
		"a right that came": {func(t testing.TB, c *setpointtest.Cluster) {
			c.Inject(setpointtest.Fault{Verb: "list", Effect: setpointtest.Unavailable})
			for range 2 {
				_, _ = c.Kubernetes().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			}
		}, "none of its caches was refused anything, so another holds its lease"},
	} {
		t.Run(name, func(t *testing.T) {
			said := failure(t, func(t testing.TB) {
				c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly, Timeout: 50 * time.Millisecond})
				tc.ask(t, c)
				c.Run(neverElected{})
			})
			if !strings.Contains(said, tc.says) {
				t.Errorf("it said %q\nand not    %q", said, tc.says)
			}
		})
	}
}

// neverElected is a manager that never starts its controllers.
type neverElected struct{}

func (neverElected) Elected() <-chan struct{} { return nil }

func (neverElected) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
