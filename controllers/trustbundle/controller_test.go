package trustbundle

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// nameOfPEM is upstream's name of a bundle whose text is PEM: the first 12 bytes of its SHA-256.
const nameOfPEM = "kubernetes.io:kube-apiserver-serving:384fb9a44fabe158be2757b9"

// replaced is what changes when a new bundle takes the place of an old one, in this order.
var replaced = []string{"create clustertrustbundles /" + nameOfPEM, "delete clustertrustbundles /kubernetes.io:kube-apiserver-serving:old"}

func bundle(name, signer, text string) *trustBundle {
	return &trustBundle{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
}

func TestPlan(t *testing.T) {
	const wanted, other = "kubernetes.io:kube-apiserver-serving:", "example.com/signer"
	name := nameOf("PEM")
	for title, c := range map[string]struct {
		have           []*trustBundle
		create, update bool
		remove         []string
	}{
		"there is none":              {nil, true, false, nil},
		"as it should be":            {[]*trustBundle{bundle(name, Signer, "PEM")}, false, false, nil},
		"somebody changed it":        {[]*trustBundle{bundle(name, Signer, "forged")}, false, true, nil},
		"those of former CAs":        {[]*trustBundle{bundle(wanted+"b", Signer, "B"), bundle(wanted+"a", Signer, "A")}, true, false, []string{wanted + "a", wanted + "b"}},
		"a former one beside it":     {[]*trustBundle{bundle(wanted+"a", Signer, "PEM"), bundle(name, Signer, "PEM")}, false, false, []string{wanted + "a"}},
		"another signer's stay":      {[]*trustBundle{bundle("example.com:signer:a", other, "PEM"), bundle("free", "", "PEM")}, true, false, nil},
		"changed, and a former one":  {[]*trustBundle{bundle(name, Signer, ""), bundle(wanted+"a", Signer, "A")}, false, true, []string{wanted + "a"}},
		"another signer's, its name": {[]*trustBundle{bundle(name, other, "PEM")}, true, false, nil},
	} {
		t.Run(title, func(t *testing.T) {
			p := planOf("PEM", c.have)
			var removed []string
			for _, b := range p.remove {
				removed = append(removed, b.Name)
			}
			if diff := cmp.Diff(c.remove, removed); diff != "" || (p.create != nil) != c.create || (p.update != nil) != c.update {
				t.Errorf("create %v, update %v, remove %s", p.create, p.update, diff)
			}
		})
	}
}

func TestName(t *testing.T) {
	if got := nameOf("PEM"); got != nameOfPEM {
		t.Errorf("%s, want %s", got, nameOfPEM)
	}
}

func TestPublishesAndRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		name := nameOf("PEM")
		reconciletest.Add(w, bundle("kubernetes.io:kube-apiserver-serving:old", Signer, "OLD"))
		w.Run(New([]byte("PEM")))
		w.Settle()
		if diff := cmp.Diff(replaced, w.Changes()); diff != "" {
			t.Error(diff)
		}
		bundles := w.Client.CertificatesV1().ClusterTrustBundles()
		got, err := bundles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || got.Spec.TrustBundle != "PEM" || got.Spec.SignerName != Signer {
			t.Fatalf("%v, %v", got, err)
		}
		got.Spec.TrustBundle = "forged"
		if _, err := bundles.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if got, err = bundles.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Spec.TrustBundle != "PEM" {
			t.Errorf("not repaired: %v, %v", got, err)
		}
		if err := bundles.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if _, err = bundles.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("not made again: %v", err)
		}
		w.Writes()
		time.Sleep(24 * time.Hour)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

// TestTheOldBundleStaysUntilTheNewOneIsThere: pods must not be left without one.
func TestTheOldBundleStaysUntilTheNewOneIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		var refused atomic.Bool
		refused.Store(true)
		w.Client.PrependReactor("create", "clustertrustbundles", func(ktesting.Action) (bool, runtime.Object, error) {
			return refused.Load(), nil, errors.New("no")
		})
		reconciletest.Add(w, bundle("kubernetes.io:kube-apiserver-serving:old", Signer, "OLD"))
		w.Run(New([]byte("PEM")))
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("%v", writes)
		}
		refused.Store(false)
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(replaced, w.Changes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNoCAPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New(nil))
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("written: %v", writes)
		}
	})
}
