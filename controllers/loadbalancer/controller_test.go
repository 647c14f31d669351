package loadbalancer

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

// TestAQuotaEndsTheShare: a Service that lacks an address because its namespace has its share is told so, and gets one when a quota says
// how many the namespace may have.
func TestAQuotaEndsTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		source, err := Parse("198.51.100.8/31")
		if err != nil {
			t.Fatal(err)
		}
		reconciletest.Add(w, balanced("first", 2))
		reconciletest.Add(w, balanced("second", 1))
		w.Run(New(source))
		w.Settle()
		second := func() *corev1.Service {
			s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "second", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		const want = "1 addresses of IPv4 belong to namespace ns, which is its share while 1 of 2 in the pool are taken; " +
			"a ResourceQuota there that says services.loadbalancers gives it another number"
		if c := meta.FindStatusCondition(second().Status.Conditions, AddressMissing); c == nil || c.Reason != poolShare || c.Message != want {
			t.Errorf("%v", c)
		}
		if events := w.Events.List(); len(events) != 1 || !strings.Contains(events[0], want) {
			t.Errorf("%q", events)
		}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourceServicesLoadBalancers: resource.MustParse("2")}
		if _, err := w.Client.CoreV1().ResourceQuotas("ns").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if s := second(); len(s.Status.LoadBalancer.Ingress) != 1 || meta.FindStatusCondition(s.Status.Conditions, AddressMissing) != nil {
			t.Errorf("%+v", s.Status)
		}
	})
}

// TestWhoLacksAnAddressIsTold who has it, for as long as that is so.
func TestWhoLacksAnAddressIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, node("n", "192.0.2.1"))
		reconciletest.Add(w, balanced("first", 2))
		reconciletest.Add(w, balanced("second", 1))
		w.Run(New(Source{}))
		w.Settle()
		condition := func() *metav1.Condition {
			s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "second", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return meta.FindStatusCondition(s.Status.Conditions, AddressMissing)
		}
		const want = "port 80/TCP of the nodes belongs to Service ns/first"
		if c := condition(); c == nil || c.Reason != "PortTaken" || c.Message != want {
			t.Errorf("%v", c)
		}
		if events := w.Events.List(); len(events) != 1 || !strings.Contains(events[0], want) {
			t.Errorf("%q", events)
		}
		w.Writes()
		w.Settle()
		if n := len(w.Writes()); n != 0 {
			t.Errorf("%d writes although nothing changed", n)
		}
		if err := w.Client.CoreV1().Services("ns").Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if c := condition(); c != nil {
			t.Errorf("the first has gone: %v", c)
		}
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

// TestOneExternalAddressOfTwoServices: the younger one is told, of whichever type it is, until the older has gone.
func TestOneExternalAddressOfTwoServices(t *testing.T) {
	external := func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.5"} }
	for name, source := range map[string]Source{"nodes": {}, "none": {None: true}} {
		synctest.Test(t, func(t *testing.T) {
			w := reconciletest.New(t)
			reconciletest.Add(w, balanced("old", 3, plain, external))
			reconciletest.Add(w, balanced("young", 2, plain, external))
			reconciletest.Add(w, balanced("apart", 1, plain, external, port(81, corev1.ProtocolTCP)))
			w.Run(New(source))
			w.Settle()
			told := func() (all []string) {
				for _, name := range []string{"old", "young", "apart"} {
					s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), name, metav1.GetOptions{})
					if err != nil {
						continue
					}
					if c := meta.FindStatusCondition(s.Status.Conditions, AddressTaken); c != nil {
						all = append(all, name+": "+c.Message)
					}
				}
				return all
			}
			const want = "young: 203.0.113.5:80/TCP belongs to Service ns/old, which is older"
			if got := told(); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %q", name, got)
			}
			if events := w.Events.List(); len(events) != 1 || !strings.Contains(events[0], "belongs to Service ns/old") {
				t.Errorf("%s: %q", name, events)
			}
			w.Writes()
			w.Settle()
			if n := len(w.Writes()); n != 0 {
				t.Errorf("%s: %d writes although nothing changed", name, n)
			}
			if err := w.Client.CoreV1().Services("ns").Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.Settle()
			if got := told(); len(got) != 0 {
				t.Errorf("%s: the older has gone: %q", name, got)
			}
		})
	}
}
