package dnsservice

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
)

func get(t *testing.T, w *reconciletest.World) *corev1.Service {
	t.Helper()
	s, err := w.Client.CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), clusterdns.Service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put makes a Service of that name.
func put(t *testing.T, w *reconciletest.World, labels map[string]string) {
	t.Helper()
	_, err := w.Client.CoreV1().Services(metav1.NamespaceSystem).Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: clusterdns.Service, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

var address = netip.MustParseAddr("10.96.0.10")

func TestTheServiceIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New(false, address))
		w.Settle()
		if s := get(t, w); s == nil || s.Spec.ClusterIP != address.String() || len(s.Spec.Ports) != 3 {
			t.Fatalf("%v", s)
		}
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		if err := w.Client.CoreV1().Services(metav1.NamespaceSystem).Delete(t.Context(), clusterdns.Service, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if get(t, w) == nil {
			t.Error("it did not come back")
		}
	})
}

func TestOthersServicesStay(t *testing.T) {
	for name, none := range map[string]bool{"builtin": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				put(t, w, map[string]string{"k8s-app": "kube-dns"})
				w.Writes()
				w.Run(New(none, address))
				w.Settle()
				if writes := w.Writes(); len(writes) > 0 {
					t.Errorf("%v", writes)
				}
			})
		})
	}
}

func TestWithoutTheBuiltInOneOursGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		put(t, w, map[string]string{clusterdns.ProxyLabel: clusterdns.ProxyName})
		w.Run(New(true, address))
		w.Settle()
		if s := get(t, w); s != nil {
			t.Errorf("%v", s)
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{"": false, "builtin": false, "none": true} {
		if none, err := Parse(text); none != want || err != nil {
			t.Errorf("%q: %v, %v", text, none, err)
		}
	}
	if _, err := Parse("coredns"); !errors.Is(err, ErrFlag) {
		t.Errorf("%v", err)
	}
}
