package loadbalancer

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func TestServicesGetTheirAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		source, err := Parse("198.51.100.8/32")
		if err != nil {
			t.Fatal(err)
		}
		reconciletest.Add(w, balanced("first", 2))
		reconciletest.Add(w, balanced("second", 1))
		w.Run(New(source))
		expect := func(what string, want map[string]string) {
			t.Helper()
			w.Settle()
			for name, ip := range want {
				s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, i := range s.Status.LoadBalancer.Ingress {
					got = append(got, i.IP)
				}
				if strings.Join(got, " ") != ip || meta.IsStatusConditionTrue(s.Status.Conditions, FromPool) != (ip != "") {
					t.Errorf("%s: %s has %v, %v", what, name, got, s.Status.Conditions)
				}
			}
		}
		expect("one address for two", map[string]string{"first": "198.51.100.8", "second": ""})
		s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "first", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Type = corev1.ServiceTypeClusterIP
		if _, err := w.Client.CoreV1().Services("ns").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("the first needs none", map[string]string{"first": "", "second": "198.51.100.8"})
	})
}

func TestServicesOfTwoFamiliesGetTwoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		source, err := Parse("198.51.100.8/32,2001:db8:1::8/128")
		if err != nil {
			t.Fatal(err)
		}
		reconciletest.Add(w, balanced("x", 1, families(corev1.IPv4Protocol, corev1.IPv6Protocol)))
		w.Run(New(source))
		w.Settle()
		s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "x", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ingress, condition := s.Status.LoadBalancer.Ingress, meta.FindStatusCondition(s.Status.Conditions, FromPool)
		if len(ingress) != 2 || ingress[0].IP != "198.51.100.8" || ingress[1].IP != "2001:db8:1::8" || condition == nil ||
			condition.Message != "nodes announce 198.51.100.8 and 2001:db8:1::8" {
			t.Errorf("%v, %v", ingress, condition)
		}
	})
}
