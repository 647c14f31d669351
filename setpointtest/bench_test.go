package setpointtest_test

import (
	"fmt"
	"strings"
	"testing"

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

func configMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {text: %q}}\n", i, strings.Repeat("x", 200))
	}
	return b.String()
}
