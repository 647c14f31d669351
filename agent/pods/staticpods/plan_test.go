package staticpods

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(name, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(uid)}}
}

// mirror shows the pod with the uid hash.
func mirror(name, hash string) *corev1.Pod {
	p := pod(name, "mirror")
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash}
	return p
}

func deleted(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func byUID(list ...*corev1.Pod) map[types.UID]*corev1.Pod {
	out := map[types.UID]*corev1.Pod{}
	for _, p := range list {
		out[p.UID] = p
	}
	return out
}

// text is a plan as words such as "start:a/1".
func (s steps) text() string {
	var out []string
	for _, part := range []struct {
		verb string
		list []*corev1.Pod
	}{{"end", s.end}, {"start", s.start}, {"remove", s.remove}, {"create", s.create}} {
		slices.SortFunc(part.list, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		for _, p := range part.list {
			out = append(out, part.verb+":"+p.Name+"/"+string(p.UID))
		}
	}
	return strings.Join(out, " ")
}

func TestWhatARoundDoes(t *testing.T) {
	a1, a2, b := pod("a", "1"), pod("a", "2"), pod("b", "3")
	for _, c := range []struct {
		name string
		w    world
		want string
	}{
		{"nothing", world{}, ""},
		{"a new manifest", world{wanted: []*corev1.Pod{a1}}, "start:a/1"},
		{"it runs, and the API has not told", world{wanted: []*corev1.Pod{a1}, running: byUID(a1)}, ""},
		{"it is not shown", world{wanted: []*corev1.Pod{a1}, running: byUID(a1), known: true}, "create:a/1"},
		{"it is", world{wanted: []*corev1.Pod{a1}, running: byUID(a1), known: true, mirrors: []*corev1.Pod{mirror("a", "1")}}, ""},
		{"its mirror is being deleted", world{wanted: []*corev1.Pod{a1}, running: byUID(a1), known: true,
			mirrors: []*corev1.Pod{deleted(mirror("a", "1"))}}, "remove:a/mirror"},
		{"it changed", world{wanted: []*corev1.Pod{a2}, running: byUID(a1)}, "end:a/1"},
		{"the old one is ending", world{wanted: []*corev1.Pod{a2}, running: byUID(a1), ending: map[types.UID]bool{"1": true}}, ""},
		{"the old one has ended", world{wanted: []*corev1.Pod{a2}, known: true, mirrors: []*corev1.Pod{mirror("a", "1")}},
			"start:a/2 remove:a/mirror"},
		{"the new one is shown by the old mirror", world{wanted: []*corev1.Pod{a2}, running: byUID(a2), known: true,
			mirrors: []*corev1.Pod{mirror("a", "1")}}, "remove:a/mirror"},
		{"the manifest is gone", world{running: byUID(a1), known: true, mirrors: []*corev1.Pod{mirror("a", "1")}}, "end:a/1"},
		{"what it ran has ended", world{known: true, mirrors: []*corev1.Pod{mirror("a", "1")}}, "remove:a/mirror"},
		{"two of one name", world{wanted: []*corev1.Pod{a1, a2, b}}, "start:a/1 start:b/3"},
	} {
		if got := plan(c.w).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
