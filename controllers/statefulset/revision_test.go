package statefulset

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Data and name of a revision are those of Kubernetes 1.34 and later.
func TestUpstreamsRevision(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "test", Annotations: map[string]string{"a": "b"}}}
	if err := json.Unmarshal([]byte(`{"metadata":{"annotations":{"test":"value"},"labels":{"app":"foo"}},"spec":{"containers":[{"name":"test",
		"image":"test","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}],
		"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}`),
		&set.Spec.Template); err != nil {
		t.Fatal(err)
	}
	got, err := newRevision(set, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "test-776999688b" || got.Revision != 3 {
		t.Errorf("%s, number %d", got.Name, got.Revision)
	}
	if diff := cmp.Diff(map[string]string{"app": "foo", hashLabel: "776999688b"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(set.Annotations, got.Annotations); diff != "" {
		t.Error(diff)
	}
}

// revisionOfImage is a revision as an earlier pass made it.
func revisionOfImage(t *testing.T, name string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	r, err := newRevision(newSet(1, image(name)), number)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRevise(t *testing.T) {
	v1, v2 := revisionOfImage(t, "v1", 1), revisionOfImage(t, "v2", 2)
	foreign := v1.DeepCopy() // as Kubernetes 1.33 wrote it
	foreign.Data.Raw = []byte(strings.Replace(string(v1.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
	foreign.Name = "web-foreign"
	for _, c := range []struct {
		name            string
		image, running  string
		revisions       []*appsv1.ControllerRevision
		current, update string
		number          int64
		create, raise   bool
	}{
		{"the first", "v1", "", nil, v1.Name, v1.Name, 1, true, false},
		{"no change", "v1", v1.Name, []*appsv1.ControllerRevision{v1}, v1.Name, v1.Name, 1, false, false},
		{"a new template", "v2", v1.Name, []*appsv1.ControllerRevision{v1}, v1.Name, v2.Name, 2, true, false},
		{"in between", "v2", v1.Name, []*appsv1.ControllerRevision{v1, v2}, v1.Name, v2.Name, 2, false, false},
		{"rolled back", "v1", v2.Name, []*appsv1.ControllerRevision{v1, v2}, v2.Name, v1.Name, 3, false, true},
		{"rolled back half-way", "v1", v1.Name, []*appsv1.ControllerRevision{v1, v2}, v1.Name, v1.Name, 3, false, true},
		{"in other bytes", "v1", foreign.Name, []*appsv1.ControllerRevision{foreign}, foreign.Name, foreign.Name, 1, false, false},
		{"the status names one that is gone", "v2", "web-gone", []*appsv1.ControllerRevision{v1, v2}, v2.Name, v2.Name, 2, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := newSet(1, image(c.image))
			set.Status.CurrentRevision = c.running
			r, err := revise(set, c.revisions)
			if err != nil {
				t.Fatal(err)
			}
			if r.current.Name != c.current || r.update.Name != c.update || r.update.Revision != c.number ||
				r.create != c.create || r.raise != c.raise {
				t.Errorf("current %s, update %s number %d, create %v, raise %v", r.current.Name, r.update.Name, r.update.Revision, r.create, r.raise)
			}
		})
	}
}

func TestTemplateOf(t *testing.T) {
	set := newSet(1, image("v9"), func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.NodeName = "n" })
	got, err := templateOf(set, revisionOfImage(t, "v1", 1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&newSet(1).Spec.Template, got); diff != "" {
		t.Errorf("the template is replaced as a whole: %s", diff)
	}
	if _, err := templateOf(set, &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`[`)}}); err == nil {
		t.Error("a broken revision is no error")
	}
}

func TestExpendable(t *testing.T) {
	var all []*appsv1.ControllerRevision
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.StatefulSetRevisionLabel: "a"}}}
	for limit, want := range map[int32]string{0: "bcd", 1: "bc", 3: "", 9: "", -1: ""} {
		got := ""
		set := newSet(1, func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = &limit })
		for _, r := range expendable(set, revised{current: all[4], update: all[5]}, all, []*corev1.Pod{pod}) {
			got += r.Name
		}
		if got != want {
			t.Errorf("limit %d: deletes %q, want %q", limit, got, want)
		}
	}
}
