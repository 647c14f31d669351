package reconciletest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOutcomes of writes: what is stored, and what is answered.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		outcome Outcome
		answer  func(error) bool
		stored  bool
	}{
		"applied":    {Applied, func(err error) bool { return err == nil }, true},
		"refused":    {Refused, apierrors.IsInternalError, false},
		"conflicted": {Conflicted, apierrors.IsConflict, false},
		"lost":       {Lost, apierrors.IsTimeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(t)
				maps := w.Client.CoreV1().ConfigMaps("ns")
				var asked []string
				w.Intercept(func(write string) Outcome {
					asked = append(asked, write)
					return c.outcome
				})
				if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !c.answer(err) {
					t.Errorf("answer: %v", err)
				}
				if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); (err == nil) != c.stored {
					t.Errorf("stored: %v, want %v", err == nil, c.stored)
				}
				if diff := cmp.Diff([]string{"create configmaps ns/a"}, asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestViews: while events are held, informers show the past; afterwards they show the present, whether they got the events or not.
func TestViews(t *testing.T) {
	for name, end := range map[string]func(*World){"released": (*World).Release, "broken": (*World).Break} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(t)
				informer := w.Informers.Core().V1().ConfigMaps().Informer()
				Add(w, configMap("a"))
				w.Start()
				w.Settle()
				w.Hold()
				for _, value := range []string{"1", "2"} {
					Edit(w, configMap("a"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": value} })
				}
				Add(w, configMap("b"))
				w.Delete(configMap("a"))
				time.Sleep(time.Hour)
				if got := informer.GetStore().ListKeys(); !cmp.Equal([]string{"ns/a"}, got) {
					t.Errorf("held: %v", got)
				}
				end(w)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := informer.GetStore().ListKeys(); !cmp.Equal([]string{"ns/b"}, got) {
					t.Errorf("afterwards: %v", got)
				}
			})
		})
	}
}

// TestNewCaches begin with what is there.
func TestNewCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		before := w.Informers.Core().V1().ConfigMaps().Informer()
		Add(w, configMap("a"))
		w.Start()
		w.Settle()
		w.NewCaches()
		Add(w, configMap("b"))
		after := w.Informers.Core().V1().ConfigMaps().Informer()
		w.Start()
		w.Settle()
		if a, b := len(before.GetStore().ListKeys()), len(after.GetStore().ListKeys()); a != 1 || b != 2 {
			t.Errorf("%d before, %d after", a, b)
		}
	})
}
