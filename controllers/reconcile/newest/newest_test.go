package newest

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func claim(uid, version string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: types.UID(uid), ResourceVersion: version}}
}

// TestWhatIsGoneIsForgotten reads a cache that has nothing.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.RunIn(w.Env(), reconcile.Controller{Name: "test", Reads: []reconcile.Read{reconcile.PersistentVolumeClaims}, Run: func(ctx context.Context, env *reconcile.Env) error {
			var v Versions[*corev1.PersistentVolumeClaim]
			v.Wrote(claim("a", "10"))
			if _, err := v.Get(reconcile.PersistentVolumeClaims.From(env), reconcile.KeyOf(claim("a", ""))); !apierrors.IsNotFound(err) || len(v.own) > 0 {
				t.Errorf("%v, %d kept", err, len(v.own))
			}
			return reconcile.Idle(ctx)
		}})
	})
}

func TestTheNewerVersionIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		own, cached *corev1.PersistentVolumeClaim
		want        string
		kept        bool
	}{
		"nothing written":     {nil, claim("a", "5"), "5", false},
		"cache lags":          {claim("a", "10"), claim("a", "9"), "10", true},
		"cache has it":        {claim("a", "10"), claim("a", "10"), "10", false},
		"cache has more":      {claim("a", "10"), claim("a", "11"), "11", false},
		"another of the name": {claim("a", "10"), claim("b", "9"), "9", false},
		"no number":           {claim("a", "x"), claim("a", "9"), "9", false},
	} {
		t.Run(name, func(t *testing.T) {
			var v Versions[*corev1.PersistentVolumeClaim]
			if c.own != nil {
				v.Wrote(c.own)
			}
			found, err := v.List(func() ([]*corev1.PersistentVolumeClaim, error) { return []*corev1.PersistentVolumeClaim{c.cached}, nil })
			if err != nil {
				t.Fatal(err)
			}
			got := found[0]
			if got.ResourceVersion != c.want || got.UID == "a" && c.cached.UID == "b" {
				t.Errorf("%s of %s, want %s", got.ResourceVersion, got.UID, c.want)
			}
			if _, kept := v.own[reconcile.KeyOf(c.cached)]; kept != c.kept {
				t.Errorf("kept: %t, want %t", kept, c.kept)
			}
		})
	}
}
