package servicecidr

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// begin runs it over monitors that know no more of addresses than their names, as those of a server.
func begin(t *testing.T, w *reconciletest.World) {
	t.Helper()
	informer := w.Informers.Networking().V1().IPAddresses().Informer()
	err := informer.SetTransform(func(o any) (any, error) {
		address := o.(*networkingv1.IPAddress)
		return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: address.Name, ResourceVersion: address.ResourceVersion}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	env := w.Env()
	env.Metadata = w.Metadata([]reconciletest.Kind{{Resource: ipAddresses, Kind: "IPAddress"}})
	w.RunIn(env, New(func() map[schema.GroupVersionResource]cache.SharedIndexInformer {
		return map[schema.GroupVersionResource]cache.SharedIndexInformer{ipAddresses: informer}
	}))
}

func add(w *reconciletest.World, name, prefix string) {
	reconciletest.Add(w, &serviceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{prefix}}})
}

func address(w *reconciletest.World, name string) {
	reconciletest.Add(w, &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{networkingv1.LabelManagedBy: manager}}})
}

func get(t *testing.T, w *reconciletest.World, name string) *serviceCIDR {
	t.Helper()
	w.Settle()
	c, err := w.Client.NetworkingV1().ServiceCIDRs().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func isReady(c *serviceCIDR) bool {
	return c != nil && meta.IsStatusConditionTrue(c.Status.Conditions, "Ready")
}

// TestTheLifeOfARange: ready, kept while an address needs it, gone after its grace.
func TestTheLifeOfARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add(w, "a", "10.1.0.0/24")
		begin(t, w)
		if got := get(t, w, "a"); !isReady(got) || len(got.Finalizers) != 1 {
			t.Fatalf("%+v", got)
		}
		if diff := cmp.Diff([]string{"patch servicecidrs /a", "patch servicecidrs/status /a"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		address(w, "10.1.0.7")
		time.Sleep(24 * time.Hour)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		if err := w.Client.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := get(t, w, "a"); got == nil || isReady(got) {
			t.Fatalf("in use: %+v", got)
		}
		if err := w.Client.NetworkingV1().IPAddresses().Delete(t.Context(), "10.1.0.7", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := get(t, w, "a"); got != nil {
			t.Errorf("no longer in use: %+v", got)
		}
	})
}

// TestAnUnusedRangeGoesAfterItsGrace, and a range that another comes to contain.
func TestAnUnusedRangeGoesAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add(w, "unused", "10.1.0.0/24")
		add(w, "used", "10.2.0.0/24")
		address(w, "10.2.0.1")
		begin(t, w)
		w.Settle()
		for _, name := range []string{"unused", "used"} {
			if err := w.Client.NetworkingV1().ServiceCIDRs().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(deletionGrace - time.Second)
		if get(t, w, "unused") == nil {
			t.Error("it went before its grace was over")
		}
		time.Sleep(time.Second)
		if get(t, w, "unused") != nil || get(t, w, "used") == nil {
			t.Error("one should have gone")
		}
		add(w, "large", "10.2.0.0/16")
		if get(t, w, "used") != nil {
			t.Error("another contains it")
		}
	})
}

// TestAFailureIsTold as upstream tells it, and tried again.
func TestAFailureIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		failures := 2
		w.Client.PrependReactor("patch", "servicecidrs", func(a ktesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() == "" || failures == 0 {
				return false, nil, nil
			}
			failures--
			return true, nil, errors.New("no")
		})
		add(w, "a", "10.1.0.0/24")
		begin(t, w)
		time.Sleep(time.Minute)
		const told = "Warning KubernetesServiceCIDRError The ServiceCIDR Status can not be set to Ready=True"
		if !isReady(get(t, w, "a")) || !cmp.Equal(w.Events.List(), []string{told, told}) {
			t.Error("it is not ready, or nobody was told")
		}
	})
}

// TestWithoutMonitorsNothingGoes.
func TestWithoutMonitorsNothingGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add(w, "a", "10.1.0.0/24")
		w.Run(New(func() map[schema.GroupVersionResource]cache.SharedIndexInformer { return nil }))
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("%v", writes)
		}
	})
}
