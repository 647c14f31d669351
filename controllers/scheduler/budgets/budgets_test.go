package budgets

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// TestSplit: a budget pays once for a pod, and never for one without labels.
func TestSplit(t *testing.T) {
	pod := func(name string, app map[string]string) *plugin.Pod {
		return plugin.NewPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: app}})
	}
	web := map[string]string{"app": "web"}
	pods := []*plugin.Pod{pod("paid", web), pod("first", web), pod("second", web), pod("other", map[string]string{"app": "db"}), pod("plain", nil)}
	notDB, err := labels.Parse("app!=db")
	if err != nil {
		t.Fatal(err)
	}
	protected, free := Split(pods, []Budget{{"default", "notDB", notDB, 1, map[string]metav1.Time{"paid": {}}}})
	if len(protected) != 1 || protected[0].Name != "second" || len(free) != 4 {
		t.Errorf("protected %v, free %v", protected, free)
	}
}

// TestSplitStopsAtTheFirst: a pod that one budget protects is not counted against the next.
func TestSplitStopsAtTheFirst(t *testing.T) {
	pod := func(name string) *plugin.Pod {
		return plugin.NewPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"name": name}}})
	}
	first := Budget{"default", "first", labels.SelectorFromSet(labels.Set{"name": "a"}), 0, nil}
	both := Budget{"default", "second", labels.Everything(), 1, nil}
	protected, free := Split([]*plugin.Pod{pod("a"), pod("b")}, []Budget{first, both})
	if len(protected) != 1 || len(free) != 1 || free[0].Name != "b" {
		t.Errorf("protected %v, free %v", protected, free)
	}
}
