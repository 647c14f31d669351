package bootstraptoken

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/google/go-cmp/cmp"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func token(id string, end time.Time, signs bool) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef")},
	}
	if !end.IsZero() {
		s.Data["expiration"] = []byte(end.Format(time.RFC3339))
	}
	if signs {
		s.Data["usage-bootstrap-signing"] = []byte("true")
	}
	return s
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		now := time.Now()
		foreign := token("foreig", now.Add(-time.Hour), true)
		foreign.Namespace = "other"
		broken := token("broken", time.Time{}, true)
		broken.Data["expiration"] = []byte("soon")
		for _, s := range []*corev1.Secret{
			token("ever00", time.Time{}, true), token("hour00", now.Add(time.Hour), true), token("past00", now.Add(-time.Hour), true),
			token("silent", now.Add(2*time.Hour), false), foreign, broken,
		} {
			reconciletest.Add(w, s)
		}
		reconciletest.Add(w, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"},
			Data:       map[string]string{"kubeconfig": "the cluster's", "jws-kubeconfig-gone00": "old"},
		})
		w.Run(New(nil))
		w.Settle()
		look := func(wantSecrets, wantKeys []string) {
			t.Helper()
			list, err := w.Client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range list.Items {
				names = append(names, string(s.Data["token-id"]))
			}
			slices.Sort(names)
			info, err := w.Client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantSecrets, names) + cmp.Diff(wantKeys, slices.Sorted(maps.Keys(info.Data))); diff != "" {
				t.Error(diff)
			}
			if !jws.DetachedTokenIsValid(info.Data["jws-kubeconfig-ever00"], "the cluster's", "ever00", "0123456789abcdef") {
				t.Error("the signature is not good")
			}
		}
		look([]string{"ever00", "foreig", "hour00", "silent"}, []string{"jws-kubeconfig-ever00", "jws-kubeconfig-hour00", "kubeconfig"})
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		time.Sleep(time.Hour + time.Second)
		w.Settle()
		look([]string{"ever00", "foreig", "silent"}, []string{"jws-kubeconfig-ever00", "kubeconfig"})
	})
}

// TestClusterInfoComesBack: it is made and signed, what an administrator writes into it
// stays, and what he deletes comes back.
func TestClusterInfoComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New([]byte("the cluster's")))
		w.Settle()
		if diff := cmp.Diff([]string{"create configmaps kube-public/cluster-info"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		infos := w.Client.CoreV1().ConfigMaps("kube-public")
		look := func(content string) {
			t.Helper()
			w.Settle()
			info, err := infos.Get(t.Context(), "cluster-info", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if info.Data["kubeconfig"] != content || !jws.DetachedTokenIsValid(info.Data["jws-kubeconfig-ever00"], content, "ever00", "0123456789abcdef") {
				t.Errorf("cluster-info: %q", info.Data)
			}
		}
		if _, err := w.Client.CoreV1().Secrets("kube-system").Create(t.Context(), token("ever00", time.Time{}, true), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		look("the cluster's")
		own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "an administrator's"}}
		if _, err := infos.Update(t.Context(), own, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookInterval)
		look("an administrator's")
		if err := infos.Delete(t.Context(), "cluster-info", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookInterval)
		look("the cluster's")
		w.Writes()
		time.Sleep(2 * lookInterval)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}
