package house

import (
	"go/ast"
	"slices"
	"testing"
)

// clocked are the packages that go by the cluster's clock, which Cluster.Advance moves.
var clocked = []string{"apiserver/...", "controllers/...", "server/...", "agent/simulated"}

// processTime are those of their files and packages that ask the process for its time, and what it is about.
var processTime = map[string]string{
	"apiserver/admission/dynamic/typecheck.go": "the pause before another try",
	"apiserver/admission/timing":               "how long plugins take",
	"apiserver/admission/quota/keep.go":        "the pause before another try",
	"apiserver/admission/serviceaccount.go":    "how long a request may wait",
	"apiserver/aggregation":                    "certificates on the wire, and pauses before other tries",
	"server/auditlog":                          "how often losses are told",
	"server/backups":                           "files of this machine, by its clock",
	"apiserver/auth/authconfig":                "how often a file is read",
	"apiserver/auth/authenticate.go":           "certificates on the wire",
	"apiserver/auth/reviews":                   "what is answered and not stored",
	"apiserver/revoked.go":                     "how often who was revoked is logged",
	"apiserver/crd/catalog.go":                 "the pause before another try",
	"apiserver/discovery/health.go":            "how often failed checks are logged",
	"server/drain":                             "how long requests may take",
	"apiserver/encryption":                     "how often files and objects are looked at",
	"apiserver/entry.go":                       "how long requests take",
	"apiserver/flowcontrol":                    "how long requests may wait",
	"server/http2buffer":                       "how long frames may wait",
	"apiserver/managedfields":                  "managedFields: upstream's own manager, which writes them too, has no clock",
	"apiserver/requestmetrics":                 "how long requests take",
	"apiserver/storage":                        "bookmarks, pages and pauses: the memory and the connections of this process",
	"apiserver/usage":                          "what real nodes use",
	"apiserver/impatientwriter.go":             "how long connections live",
	"apiserver/written.go":                     "how long requests take",

	"controllers/reconcile/reconciletest": "tests of loops, in bubbles",
	"controllers/reconcile/recording":     "the pause before another try",
	"controllers/run.go":                  "the pause before another try",
	"controllers/scheduler/binder.go":     "how long attempts take",
	"controllers/scheduler/devices":       "what caches have not seen yet, and pauses before other looks",
	"controllers/scheduler/points":        "how long plugins take",
	"controllers/scheduler/queue.go":      "how long attempts take",
	"controllers/scheduler/scheduler.go":  "how long attempts take",

	"server/caches":    "how long caches take",
	"server/inprocess": "how long requests take",
	"server/liveness":  "gossip and sessions of real nodes",
	"server/loops":     "when lines were logged, and how long requests take",
	"server/offline":   "a server that does not run",
	"server/parts":     "when lines were logged",
	"server/peers":     "what real nodes use",
	"server":           "certificates on the wire, and how long the process's own parts take",
}

// TestHouseClocks: everything that acts or stamps goes by the cluster's clock; what asks for the process's time says why.
func TestHouseClocks(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if f.test || !matchAny(clocked, f.dir) {
			return
		}
		for _, at := range processTimes(f) {
			for _, place := range []string{f.path, f.dir} {
				used[place] = used[place] || processTime[place] != ""
			}
			if processTime[f.path] == "" && processTime[f.dir] == "" {
				t.Errorf("%s: the process's time\n\twhy not: Advance does not move it; use the clock of Env, Config or Store, or write the reason into processTime", at)
			}
		}
	})
	noLeftovers(t, "processTime", processTime, used)
}

// processTimes finds where a file asks for the process's time or waits by it.
func processTimes(f *sourceFile) (found []string) {
	asks := map[string][]string{
		"time":                                 {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if slices.Contains(asks[packageNamed(f, selector.X)], selector.Sel.Name) {
				found = append(found, position(selector))
			}
		}
		return true
	})
	return found
}
