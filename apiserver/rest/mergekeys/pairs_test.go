package mergekeys

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podWith(variables int) *corev1.Pod {
	env := make([]corev1.EnvVar, variables)
	for i := range env {
		env[i] = corev1.EnvVar{Name: fmt.Sprint("variable-", i), Value: "v"}
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: env}}}}
}

// judge sends a patch through a guard, and says what Affordable finds of it.
func judge(t *testing.T, pod *corev1.Pod, patch string) (err error) {
	t.Helper()
	next := func(_ http.ResponseWriter, r *http.Request) { err = Affordable(r.Context(), pod) }
	refuse := func(_ http.ResponseWriter, _ *http.Request, cause error) { t.Fatal(cause) }
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", strings.NewReader(patch))
	r.Header.Set("Content-Type", string(types.StrategicMergePatchType))
	Guard(&corev1.Pod{}, 3<<20, refuse, next)(httptest.NewRecorder(), r)
	return err
}

// inContainer is a patch of the pod's container.
func inContainer(fields string) string {
	return `{"spec":{"containers":[{"name":"c",` + fields + `}]}}`
}

func variables(from, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"name":"variable-%d","value":"w"}`, from+i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestAffordable(t *testing.T) {
	names := strings.Repeat(`{"name":"c","env":`+variables(0, 100)+`},`, 200)
	for name, c := range map[string]struct {
		variables int
		patch     string
		refused   bool
	}{
		"one item of a long list":          {12000, inContainer(`"env":` + variables(0, 1)), true},
		"a new item of a long list":        {12000, inContainer(`"env":` + variables(99999, 1)), true},
		"many items of a short list":       {1, inContainer(`"env":` + variables(0, 12000)), true},
		"an order of many":                 {1, inContainer(`"$setElementOrder/env":` + variables(0, 12000)), true},
		"the same item again and again":    {1, `{"spec":{"containers":[` + strings.TrimSuffix(names, ",") + `]}}`, true},
		"names of a list of values":        {1, `{"metadata":{"finalizers":["a"` + strings.Repeat(`,"b/c"`, 12000) + `]}}`, true},
		"a long list that is not touched":  {12000, inContainer(`"image":"new"`), false},
		"a list that is replaced":          {1, inContainer(`"args":["a"` + strings.Repeat(`,"b"`, 12000) + `]`), false},
		"a list as long as anybody's":      {1500, inContainer(`"env":` + variables(0, 50)), false},
		"fields without a list":            {12000, `{"metadata":{"labels":{"a":"b"}}}`, false},
		"what upstream will say is wrong":  {12000, `{"spec":{"nothing":[{"name":"a"}]}}`, false},
		"a directive that deletes an item": {12000, inContainer(`"env":[{"name":"variable-7","$patch":"delete"}]`), true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := judge(t, podWith(c.variables), c.patch); apierrors.IsRequestEntityTooLargeError(err) != c.refused || !c.refused && err != nil {
				t.Errorf("refused: %v, want %v", err, c.refused)
			}
		})
	}
}

// TestManyObjectsAreFew: lists of many containers are merged each for itself.
func TestManyObjectsAreFew(t *testing.T) {
	pod, patch := podWith(100), &corev1.Pod{}
	for i := range 60 {
		container := *pod.Spec.Containers[0].DeepCopy()
		container.Name = fmt.Sprint("c-", i)
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	patch.Spec.Containers = pod.Spec.Containers
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(t, pod, string(text)); err != nil {
		t.Error(err)
	}
	delete := metav1.ObjectMeta{Finalizers: []string{"a"}}
	if pod.ObjectMeta = delete; judge(t, pod, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`) != nil {
		t.Error("a finalizer cannot be deleted")
	}
}
