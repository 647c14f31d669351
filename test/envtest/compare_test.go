package envtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// contender is a way to have a control plane in a test.
type contender struct {
	name  string
	start func(b *testing.B) (configuration *rest.Config, stop func())
}

// The contenders of compare.sh: the first two are controller-runtime's envtest, with the programs of a folder.
func contenders() []contender {
	return []contender{
		{"envtest, kube-apiserver and etcd", withPrograms("UPSTREAM_ASSETS")},
		{"envtest, `setpoint envtest-assets`", withPrograms("SETPOINT_ASSETS")},
		{"`setpointtest`, the API alone", inMemory(setpointtest.Config{Loops: setpointtest.APIOnly})},
		{"`setpointtest`, all control loops", inMemory(setpointtest.Config{})},
	}
}

// startLimit is for a machine that has other things to do: envtest's own 20 seconds may be too short there.
const startLimit = 2 * time.Minute

func withPrograms(variable string) func(b *testing.B) (*rest.Config, func()) {
	return func(b *testing.B) (*rest.Config, func()) {
		b.Helper()
		if os.Getenv(variable) == "" {
			b.Fatalf("%s is not set: run test/envtest/compare.sh", variable)
		}
		environment := &envtest.Environment{BinaryAssetsDirectory: os.Getenv(variable), ControlPlaneStartTimeout: startLimit}
		configuration, err := environment.Start()
		mustf(b, err)
		return configuration, func() { mustf(b, environment.Stop()) }
	}
}

// brief is a test that ends before its benchmark does.
type brief struct {
	testing.TB
	ends []func()
}

func (s *brief) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *brief) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

func inMemory(config setpointtest.Config) func(b *testing.B) (*rest.Config, func()) {
	return func(b *testing.B) (*rest.Config, func()) {
		t := &brief{TB: b}
		return setpointtest.Start(t, config).RESTConfig(), t.end
	}
}

// taken is how long the parts of a test took.
type taken struct{ start, operator, stop time.Duration }

func (t taken) total() time.Duration { return t.start + t.operator + t.stop }

// play plays one test.
func (c contender) play(b *testing.B) (t taken) {
	begun := time.Now()
	configuration, stop := c.start(b)
	writer := newClient(b, configuration)
	mustf(b, writer.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}))
	t.start = time.Since(begun)
	begun = time.Now()
	testOperator(b, configuration, writer)
	t.operator = time.Since(begun)
	begun = time.Now()
	stop()
	t.stop = time.Since(begun)
	return t
}

// testOperator is a small operator's test: a manager is started, makes what it is asked for, heals it, follows a
// change, and ends.
func testOperator(b *testing.B, configuration *rest.Config, c client.Client) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	manager, done := newManager(b, configuration), make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{greet: "world"}}}
	mustf(b, c.Create(ctx, asked))
	secret, key := &corev1.Secret{}, client.ObjectKeyFromObject(asked)
	eventually(b, "the secret", func() bool { return c.Get(ctx, key, secret) == nil })
	mustf(b, c.Delete(ctx, secret))
	first := secret.UID
	eventually(b, "another secret", func() bool { return c.Get(ctx, key, secret) == nil && secret.UID != first })
	asked.Labels[greet] = "moon"
	mustf(b, c.Update(ctx, asked))
	eventually(b, "another text", func() bool { return c.Get(ctx, key, secret) == nil && string(secret.Data["text"]) == "hello moon" })
	cancel()
	mustf(b, <-done)
}

// BenchmarkCompare plays the same test with each contender in turn, so that all meet the same machine. It logs the
// table of docs/go-test.md: medians, and the first start of the process.
func BenchmarkCompare(b *testing.B) {
	log.SetLogger(logr.Discard())
	all := contenders()
	results := make([][]taken, len(all))
	for b.Loop() {
		for i, c := range all {
			results[i] = append(results[i], c.play(b))
		}
	}
	var table strings.Builder
	for i, c := range all {
		of := results[i]
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n", c.name, round(of[0].start), median(of, func(t taken) time.Duration { return t.start }),
			median(of, func(t taken) time.Duration { return t.operator }), median(of, func(t taken) time.Duration { return t.stop }), median(of, taken.total))
	}
	b.Logf("medians of %d rounds\n\n| | first start | start to the first write | an operator's test | stop | all |\n|---|---|---|---|---|---|\n%s", len(results[0]), &table)
}

func median(of []taken, part func(taken) time.Duration) string {
	parts := make([]time.Duration, len(of))
	for i, t := range of {
		parts[i] = part(t)
	}
	slices.Sort(parts)
	return round(parts[len(parts)/2])
}

func round(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
