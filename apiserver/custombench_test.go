package apiserver

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// BenchmarkDefinitions measures what a thousand definitions cost that nobody uses, and
// how long the first request to one of them takes. `go test -bench Definitions -benchtime 1x`.
func BenchmarkDefinitions(b *testing.B) {
	const definitions = 1000
	for range b.N {
		server := newCustomServer(b)
		before := heapBytes()
		for i := range definitions {
			define(b, server, numbered(i))
		}
		b.ReportMetric(float64(heapBytes()-before)/definitions, "heap-B/definition")
		start := time.Now()
		if got := (call{method: "POST", path: "/apis/g7.example.com/v1/namespaces/default/crontabs", body: strings.Replace(crontab("a", `{}`), "stable", "g7", 1)}).do(b, server); got.code != http.StatusCreated {
			b.Fatal(got.code, got.body)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms-first-create")
		start = time.Now()
		call{path: "/apis", accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}.do(b, server)
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms-first-discovery")
		start = time.Now()
		call{path: "/apis", accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}.do(b, server)
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms-discovery")
		runtime.KeepAlive(server)
	}
}

// numbered is a definition of some 20 kB: 100 fields with descriptions.
func numbered(i int) string {
	var fields strings.Builder
	for f := range 100 {
		fmt.Fprintf(&fields, "              field%d: {type: string, maxLength: 100, description: %q}\n", f, strings.Repeat("what this field is for ", 6))
	}
	text := strings.ReplaceAll(crontabs, "stable.example.com", fmt.Sprintf("g%d.example.com", i))
	return strings.Replace(text, "              max: {type: integer}\n", "              max: {type: integer}\n"+fields.String(), 1)
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
