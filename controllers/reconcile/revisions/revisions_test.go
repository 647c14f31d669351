package revisions

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// data is what upstream's 1.37 makes of template.
const data = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:\u003c1\u003e","name":"c","resources":{}}],"terminationGracePeriodSeconds":30}}}}`

func template() *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(30)),
			Containers:                    []corev1.Container{{Name: "c", Image: "nginx:<1>"}},
		},
	}
}

// Data and hashes name revisions that exist in clusters: were they to change, every pod would be replaced on an upgrade.
func TestDataAndHashesAreUpstreams(t *testing.T) {
	got, err := Data(template())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, string(got)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		collisions   *int32
		template     string
		revisionData string
	}{
		{nil, "5b8dfd5656", "dbd85dc5b"},
		{new(int32), "99bf499b8", "846bbffdd"},
		{new(int32(3)), "fb5f699bc", "846bbfff5"},
	} {
		if diff := cmp.Diff([]string{c.template, c.revisionData}, []string{TemplateHash(template(), c.collisions), DataHash(got, c.collisions)}); diff != "" {
			t.Error(diff)
		}
	}
}

func revision(name string, number int64, body string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.Unix(1e9, 0)},
		Data:       runtime.RawExtension{Raw: []byte(body)}, Revision: number,
	}
}

func names(list []*appsv1.ControllerRevision) string {
	var out []string
	for _, r := range list {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func TestOrder(t *testing.T) {
	young := revision("a", 2, "x")
	young.CreationTimestamp = metav1.NewTime(young.CreationTimestamp.Add(time.Second))
	list := []*appsv1.ControllerRevision{young, revision("d", 3, "x"), revision("c", 2, "y"), revision("b", 2, "x"), revision("e", 1, "x")}
	if got := names(Equal(list, []byte("x"))); got != "a d b e" {
		t.Errorf("equal: %s", got)
	}
	Sort(list)
	if got := names(list); got != "e b c a d" {
		t.Errorf("sorted: %s", got)
	}
	if Next(list) != 4 || Next(nil) != 1 {
		t.Errorf("next: %d, %d", Next(list), Next(nil))
	}
}

func TestSurplus(t *testing.T) {
	list := []*appsv1.ControllerRevision{revision("c", 3, ""), revision("a", 1, ""), revision("b", 2, "")}
	for _, c := range []struct {
		limit int
		inUse string
		want  string
	}{
		{3, "", ""}, {5, "", ""}, {2, "", "a"}, {0, "", "a b c"}, {2, "a", "b"}, {0, "b", "a c"},
	} {
		got := names(Surplus(list, c.limit, func(r *appsv1.ControllerRevision) bool { return r.Name == c.inUse }))
		if got != c.want {
			t.Errorf("limit %d, %q in use: %q, want %q", c.limit, c.inUse, got, c.want)
		}
	}
	if got := names(Surplus(list, 1, nil)); got != "a b" || names(list) != "c a b" {
		t.Errorf("surplus %q of %q", got, names(list))
	}
}

func TestNew(t *testing.T) {
	owner := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent", UID: "u", Annotations: map[string]string{"a": "b"}}}
	given := map[string]string{"app": "web"}
	got := New(Of{Owner: owner, Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Labels: given, HashLabel: "hash",
		Hash: "h", Name: Name("agent", "h"), Data: []byte(data), Number: 7})
	want := revision("agent-h", 7, data)
	want.CreationTimestamp = metav1.Time{}
	want.Labels, want.Annotations = map[string]string{"app": "web", "hash": "h"}, map[string]string{"a": "b"}
	want.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true)}}
	if diff := cmp.Diff(want, got); diff != "" || len(given) != 1 {
		t.Errorf("%s; given labels are now %v", diff, given)
	}
	if long := Name(strings.Repeat("n", 250), "h"); len(long) != 225 {
		t.Errorf("a name of %d bytes", len(long))
	}
}

// A second Create, by a pass with an old cache or a new leader, returns what the first one wrote.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		first, err := Create(t.Context(), w.Client, revision("r", 1, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Create(t.Context(), w.Client, revision("r", 2, "{}"))
		if err != nil || again.UID != first.UID || again.Revision != 1 {
			t.Errorf("again: %v, %v", again, err)
		}
		if _, err := Create(t.Context(), w.Client, revision("r", 2, `{"a":1}`)); !errors.Is(err, ErrCollision) {
			t.Errorf("other data: %v", err)
		}
		w.Writes()
		if _, err := Renumber(t.Context(), w.Client, first, 1); err != nil || len(w.Writes()) > 0 {
			t.Errorf("the same number was written: %v", err)
		}
		if second, err := Renumber(t.Context(), w.Client, first, 2); err != nil || second.Revision != 2 || first.Revision != 1 {
			t.Errorf("renumbered %v from %v: %v", second, first, err)
		}
		stranger := first.DeepCopy()
		stranger.UID = "other"
		if err := Delete(t.Context(), w.Client, stranger); err == nil {
			t.Error("deleted a revision that was not seen")
		}
		if err := errors.Join(Delete(t.Context(), w.Client, first), Delete(t.Context(), w.Client, first)); err != nil {
			t.Error(err)
		}
	})
}
