package setpointtest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// The figures of docs/go-test.md come from here: go test -run=NONE -bench=. -benchtime=20x ./setpointtest

// brief is a test that ends before its benchmark does.
type brief struct {
	testing.TB
	ends []func()
}

func (s *brief) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *brief) end() {
	for i := range s.ends {
		s.ends[len(s.ends)-1-i]()
	}
}

// BenchmarkStart: until the first write is answered.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		t := &brief{TB: b}
		c := setpointtest.Start(t, setpointtest.Config{})
		c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		b.StopTimer()
		t.end()
		b.StartTimer()
	}
}

// BenchmarkStop: until the last goroutine has ended.
func BenchmarkStop(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		t := &brief{TB: b}
		setpointtest.Start(t, setpointtest.Config{}).Wait()
		b.StartTimer()
		t.end()
	}
}

// BenchmarkFork: until the fork serves, of clusters with so many objects of their own.
func BenchmarkFork(b *testing.B) {
	for _, objects := range []int{0, 10_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			c := setpointtest.Start(b, setpointtest.Config{})
			if objects > 0 {
				c.Apply(configMaps(objects))
			}
			c.Wait()
			for b.Loop() {
				t := &brief{TB: b}
				c.Fork(t)
				b.StopTimer()
				t.end()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkDay: a virtual day of 100 CronJobs, each of which runs every hour: 2,400 pods.
func BenchmarkDay(b *testing.B) {
	day := testing.InternalTest{Name: "day", F: func(t *testing.T) { synctest.Test(t, playDay) }}
	anything := func(string, string) (bool, error) { return true, nil }
	for b.Loop() {
		if !testing.RunTests(anything, []testing.InternalTest{day}) { // only a test can have a bubble
			b.Fatal("the day failed")
		}
	}
}

const cronJobs = 100

func playDay(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 3})
	var manifests strings.Builder
	for i := range cronJobs {
		fmt.Fprintf(&manifests, `---
apiVersion: batch/v1
kind: CronJob
metadata: {name: hourly-%d}
spec:
  schedule: "%d * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}
`, i, i%60)
	}
	c.Apply(manifests.String())
	c.Advance(24 * time.Hour)
	jobs, err := c.Kubernetes().BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 3*cronJobs { // by default the last three of each are kept
		t.Errorf("%d jobs are left, %v", len(jobs.Items), err)
	}
}

func configMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {text: %q}}\n", i, strings.Repeat("x", 200))
	}
	return b.String()
}
