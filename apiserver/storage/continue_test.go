package storage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestPagesEnd: all pages of a list are one cut until five minutes after the first,
// however often the client asks; then it is offered the rest of a newer one.
func TestPagesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTestStore(0).Table(configMaps)
		for _, name := range []string{"a", "b", "d"} {
			put(t, table, configMap(name, nil))
		}
		first, err := table.List(t.Context(), ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		put(t, table, configMap("c", nil))
		time.Sleep(pagesMaxAge)
		second, err := table.List(t.Context(), ListOptions{Limit: 1, Continue: first.Continue})
		if err != nil || second.ResourceVersion != first.ResourceVersion {
			t.Fatalf("after five minutes: %+v, %v", second, err)
		}
		time.Sleep(2 * time.Second)
		_, err = table.List(t.Context(), ListOptions{Limit: 1, Continue: second.Continue})
		if !apierrors.IsResourceExpired(err) {
			t.Fatalf("later: %v", err)
		}
		offered := err.(apierrors.APIStatus).Status().Continue
		rest, err := table.List(t.Context(), ListOptions{Continue: offered})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"c", "d"}, names(rest)); diff != "" || rest.ResourceVersion == first.ResourceVersion {
			t.Errorf("the rest, at %s: %s", rest.ResourceVersion, diff)
		}
	})
}

// TestForgedContinue: a token is one that a server has made, or a bad request.
func TestForgedContinue(t *testing.T) {
	table := newTestStore(0).Table(configMaps)
	put(t, table, configMap("a", nil))
	put(t, table, configMap("b", nil))
	page, err := table.List(t.Context(), ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"x", "." + page.Continue, page.Continue + "!", page.Continue + ".1"} {
		if _, err := table.List(t.Context(), ListOptions{Continue: token}); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", token, err)
		}
	}
}
