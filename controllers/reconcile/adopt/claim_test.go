package adopt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func pod(name, app string, dying bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Labels: map[string]string{"app": app}}}
	if dying {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func names(pods []*corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

func TestClaim(t *testing.T) {
	owned := []*corev1.Pod{pod("mine", "web", false), pod("mine-dying", "web", true), pod("strayed", "db", false), pod("strayed-dying", "db", true)}
	orphans := []*corev1.Pod{pod("lost", "web", false), pod("lost-dying", "web", true), pod("other", "db", false)}
	for _, c := range []struct {
		name                 string
		dying                bool
		keep, adopt, release []string
	}{
		{"living owner", false, []string{"mine", "mine-dying"}, []string{"lost"}, []string{"strayed"}},
		{"dying owner", true, []string{"mine", "mine-dying"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Claim(pod("owner", "", c.dying), labels.SelectorFromSet(labels.Set{"app": "web"}), owned, orphans)
			if diff := cmp.Diff([][]string{c.keep, c.adopt, c.release}, [][]string{names(got.Keep), names(got.Adopt), names(got.Release)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchesNameTheUID(t *testing.T) {
	owner := &metav1.ObjectMeta{Name: "rs", UID: "uid-0"}
	child := pod("p", "", false)
	adopt := string(AdoptPatch(owner, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, child))
	want := `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"uid-0","controller":true,"blockOwnerDeletion":true}],"uid":"uid-1"}}`
	if adopt != want {
		t.Errorf("adopt: %s", adopt)
	}
	if got, want := string(ReleasePatch(owner, child)), `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"uid-0"}],"uid":"uid-1"}}`; got != want {
		t.Errorf("release: %s", got)
	}
}
