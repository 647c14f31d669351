package flowcontrol

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestWidth(t *testing.T) {
	// A thousand objects of 500 bytes.
	f := New(func(_ *request.RequestInfo, objectsLimit, bytesLimit int) (int, int) {
		objects := min(1000, objectsLimit, bytesLimit/500)
		return objects, 500 * objects
	})
	for name, c := range map[string]struct {
		verb, name, query string
		want              int
	}{
		"a get":                     {"get", "a", "", 1},
		"a write":                   {"create", "", "", 1},
		"a list":                    {"list", "", "", 10},
		"a page":                    {"list", "", "limit=250", 3},
		"a small page":              {"list", "", "limit=1", 1},
		"an odd page":               {"list", "", "limit=-1", 10},
		"a page of some":            {"list", "", "limit=1&labelSelector=a", 10},
		"a list of one":             {"list", "a", "fieldSelector=metadata.name=a", 1},
		"a watch from now on":       {"watch", "", "resourceVersion=12", 1},
		"a watch of all":            {"watch", "", "", 10},
		"a watch of what is here":   {"watch", "", "resourceVersion=0", 10},
		"a watch that begins anew":  {"watch", "", "resourceVersion=12&sendInitialEvents=true", 10},
		"a deletion of many by one": {"deletecollection", "", "", 1},
	} {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: c.verb, Resource: "pods", Name: c.name}
		if got := f.Width(httptest.NewRequest(http.MethodGet, "/?"+c.query, nil), info); got != c.want {
			t.Errorf("%s: %d seats, want %d", name, got, c.want)
		}
	}
	for _, c := range []struct{ objects, bytes, want int }{{0, 0, 1}, {1, 1, 1}, {100, 0, 1}, {101, 0, 2}, {1, 100_001, 2}, {3, 30 << 20, 10}} {
		if got := widthOf(c.objects, c.bytes); got != c.want {
			t.Errorf("%d objects of %d bytes: %d seats, want %d", c.objects, c.bytes, got, c.want)
		}
	}
}

// TestALargeListTakesManySeats: others wait while it executes, in turns, and nobody overtakes it.
func TestALargeListTakesManySeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(20)) // with two seats
		w.f.sizes = func(*request.RequestInfo, int, int) (int, int) { return 1000, 0 }
		w.askAll("lister")
		w.ask("jane", "get")
		w.askAll("lister")
		w.ask("joe", "get")
		if got := w.order(); got != "lister" {
			t.Fatalf("executing: %s", got)
		}
		w.endFirst()
		if got := w.order(); got != "jane" { // one seat is free, and the list, which is next, wants two
			t.Errorf("after the list: %s", got)
		}
		w.endFirst()
		if got := w.order(); got != "lister" {
			t.Errorf("after jane: %s", got)
		}
		w.endFirst()
		if got := w.order(); got != "joe" {
			t.Errorf("after the second list: %s", got)
		}
		w.endAll()
		if l := w.f.plan.Load().levels["narrow"]; l.taken != 0 || l.executing != 0 || len(l.flows) != 0 {
			t.Errorf("%d seats, %d requests, %d flows are left", l.taken, l.executing, len(l.flows))
		}
	})
}
