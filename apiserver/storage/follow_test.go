package storage

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// told is what a follower was told, as "+a ~a -a".
type told []string

func (l *told) changed(was, is resource.Object) {
	switch {
	case was == nil:
		*l = append(*l, "+"+is.GetName())
	case is == nil:
		*l = append(*l, "-"+was.GetName())
	default:
		*l = append(*l, "~"+is.GetName())
	}
}

func follow(t *testing.T, table *Table) (*Follower, *told) {
	t.Helper()
	l := &told{}
	f := table.Follow(l.changed, slog.New(slog.NewTextHandler(t.Output(), nil)))
	go f.Run(t.Context())
	return f, l
}

func (l *told) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	slices.Sort(*l)
	if got := strings.Join(*l, " "); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	*l = nil
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		table := store.Table(configMaps)
		put(t, table, configMap("a", nil))
		put(t, table, configMap("b", nil))
		_, l := follow(t, table)
		l.expect(t, "+a +b")
		put(t, table, configMap("a", map[string]string{"k": "v"}))
		put(t, table, configMap("c", nil))
		remove(t, table, "n", "b")
		l.expect(t, "+c -b ~a")
		put(t, store.Table(secrets), secret("s"))
		l.expect(t, "")
	})
}

// TestFollowSome: of the others nothing is told, nor kept.
func TestFollowSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTestStore(0).Table(configMaps)
		put(t, table, configMap("other", nil))
		put(t, table, configMap("a", nil))
		l := &told{}
		only := Selection{Namespace: "n", Fields: fields.OneTermEqualSelector("metadata.name", "a")}
		f := table.FollowSome(only, l.changed, slog.New(slog.NewTextHandler(t.Output(), nil)))
		go f.Run(t.Context())
		l.expect(t, "+a")
		put(t, table, configMap("other", map[string]string{"k": "v"}))
		put(t, table, configMap("a", map[string]string{"k": "v"}))
		put(t, table, configMap("another", nil))
		remove(t, table, "n", "a")
		put(t, table, configMap("a", nil))
		l.expect(t, "+a -a ~a")
		if len(f.objects) != 1 {
			t.Errorf("%d objects are kept", len(f.objects))
		}
	})
}

// TestFollowersReachARevision that only other tables have changed up to.
func TestFollowersReachARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newTestStore(0)
		f, l := follow(t, store.Table(configMaps))
		for range 3 {
			put(t, store.Table(secrets), secret("s"))
			put(t, store.Table(configMaps), configMap("a", nil))
			put(t, store.Table(secrets), secret("s"))
			if err := f.Reach(t.Context(), store.Revision()); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			reached := f.revision
			f.mu.Unlock()
			if reached != store.Revision() {
				t.Errorf("reached %d, want %d", reached, store.Revision())
			}
		}
		l.expect(t, "+a ~a ~a")
	})
}

// TestFollowerBeginsAnew when the ring has left it behind, and tells the difference only.
func TestFollowerBeginsAnew(t *testing.T) {
	store := newTestStore(1 << 10)
	table := store.Table(configMaps)
	l := &told{}
	f := table.Follow(l.changed, slog.New(slog.DiscardHandler))
	for _, name := range []string{"a", "b", "c"} {
		put(t, table, configMap(name, nil))
	}
	list := func() {
		page, err := table.List(t.Context(), ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		f.replace(page)
	}
	list()
	remove(t, table, "n", "b")
	put(t, table, configMap("c", map[string]string{"k": "v"}))
	put(t, table, configMap("d", nil))
	*l = nil
	list()
	slices.Sort(*l)
	if got := strings.Join(*l, " "); got != "+d -b ~c" {
		t.Errorf("told %q", got)
	}
}
