package certificatecleaner

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

func named(name string, answer certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if answer != "" {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: answer, LastUpdateTime: metav1.Now()}}
	}
	return csr
}

func expectWrites(t *testing.T, w *reconciletest.World, want ...string) {
	t.Helper()
	w.Settle()
	if diff := cmp.Diff(want, w.Writes()); diff != "" {
		t.Errorf("%v: %s", time.Now(), diff)
	}
}

// TestRequestsGoWhenTheirTimeHasCome: at the first pass after it, one an hour.
func TestRequestsGoWhenTheirTimeHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, named("denied", certificatesv1.CertificateDenied))
		reconciletest.Add(w, named("pending", ""))
		w.Run(New())
		expectWrites(t, w)
		time.Sleep(interval)
		expectWrites(t, w) // at the pass it was an hour old and not older
		time.Sleep(interval)
		expectWrites(t, w, "delete certificatesigningrequests /denied")
		time.Sleep(20 * time.Hour)
		expectWrites(t, w)
		time.Sleep(4 * time.Hour)
		expectWrites(t, w, "delete certificatesigningrequests /pending")
		time.Sleep(100 * time.Hour)
		expectWrites(t, w)
	})
}

// TestOneThatCannotBeDeletedKeepsNoOther and is tried again.
func TestOneThatCannotBeDeletedKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		var broken atomic.Bool
		broken.Store(true)
		w.Client.PrependReactor("delete", "certificatesigningrequests", func(a ktesting.Action) (bool, runtime.Object, error) {
			return broken.Load() && a.(ktesting.DeleteAction).GetName() == "a", nil, errors.New("no")
		})
		for _, name := range []string{"a", "b"} {
			csr := named(name, "")
			csr.CreationTimestamp = metav1.NewTime(time.Now().Add(-25 * time.Hour))
			reconciletest.Add(w, csr)
		}
		w.Run(New())
		expectWrites(t, w, "delete certificatesigningrequests /b")
		broken.Store(false)
		time.Sleep(interval)
		expectWrites(t, w, "delete certificatesigningrequests /a")
	})
}

func TestRequestsOfPodsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		env := w.Env()
		env.Metadata = w.Metadata([]reconciletest.Kind{{Resource: podRequests, Kind: "PodCertificateRequest", Namespaced: true}})
		add := func(name string) {
			reconciletest.Add(w, &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		}
		add("first")
		w.RunIn(env, NewOfPods())
		time.Sleep(time.Minute)
		add("second")
		expectWrites(t, w)
		time.Sleep(13 * time.Minute)
		expectWrites(t, w)
		time.Sleep(time.Minute) // the pass at 15 minutes
		expectWrites(t, w, "delete podcertificaterequests ns/first")
		time.Sleep(podInterval)
		expectWrites(t, w, "delete podcertificaterequests ns/second")
		time.Sleep(time.Hour)
		expectWrites(t, w)
	})
}
