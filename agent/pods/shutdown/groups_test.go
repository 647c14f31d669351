package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(name string, priority int32, grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace},
	}
}

func TestPodsEndInGroups(t *testing.T) {
	pods := []*corev1.Pod{
		pod("negative", -5, 5), pod("plain", 0, 600), pod("just-below", 99, 1), pod("at", 100, 7), pod("critical", systemCritical+1000, 30),
	}
	for _, c := range []struct {
		name    string
		periods []Period
		want    string // priority: pod/grace ...
	}{
		{"one time", Split(60*time.Second, 10*time.Second), "0: negative/5 plain/50 just-below/1 at/7; 2000000000: critical/10"},
		{"all of it for the critical ones", Split(10*time.Second, 10*time.Second),
			"0: negative/0 plain/0 just-below/0 at/0; 2000000000: critical/10"},
		{"by priority, in any order", []Period{{100, 20}, {50, 10}, {1000, 5}},
			"50: negative/5 plain/10 just-below/1; 100: at/7; 1000: critical/5"},
	} {
		var got []string
		for _, g := range groups(c.periods, pods) {
			line := fmt.Sprintf("%d:", g.Priority)
			for _, p := range g.pods {
				line += fmt.Sprintf(" %s/%d", p.Name, g.grace(p))
			}
			got = append(got, line)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
	if got := Split(0, 0); got != nil {
		t.Errorf("no time: %v", got)
	}
}
