package addressrepair

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

const ip = "10.96.0.7"

func service(name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}}}
}

// addressOf is what the API makes for a Service.
func addressOf(service string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: "IPv4", networkingv1.LabelManagedBy: manager,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "ns", Name: service}},
	}
}

func edited(a *networkingv1.IPAddress, edit func(*networkingv1.IPAddress)) *networkingv1.IPAddress {
	edit(a)
	return a
}

// TestRepair: what is written in the first minute, and what is told.
func TestRepair(t *testing.T) {
	gateway := func(a *networkingv1.IPAddress) {
		a.Spec.ParentRef.Group, a.Spec.ParentRef.Resource = "example.com", "gateways"
	}
	unmanaged := func(a *networkingv1.IPAddress) { delete(a.Labels, networkingv1.LabelManagedBy) }
	remake := []string{"delete ipaddresses /" + ip, "create ipaddresses /" + ip}
	external := service("web", "")
	headless := service("headless", "None")
	external.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		writes  []string
		events  string // the reason
	}{
		{"right", []runtime.Object{service("web", ip), addressOf("web")}, nil, ""},
		{"no address of its own", []runtime.Object{headless, external}, nil, ""},
		{"missing", []runtime.Object{service("web", ip)}, remake[1:], "ClusterIPNotAllocated"},
		{"of a gateway", []runtime.Object{service("web", ip), edited(addressOf("web"), gateway)}, remake, "ClusterIPNotAllocated"},
		{"of a Service that is gone", []runtime.Object{service("web", ip), addressOf("gone")}, remake, "ClusterIPNotAllocated"},
		{"of two", []runtime.Object{service("web", ip), service("other", ip), addressOf("other")}, nil, "ClusterIPAlreadyAllocated"},
		{"without its labels", []runtime.Object{service("web", ip), edited(addressOf("web"), unmanaged)}, remake, ""},
		{"not valid", []runtime.Object{service("web", "x")}, nil, "ClusterIPNotValid"},
		{"out of range", []runtime.Object{service("web", "10.9.0.1")}, nil, "ClusterIPOutOfRange"},
		{"leaked", []runtime.Object{addressOf("gone")}, remake[:1], "IPAddressNotAllocated"},
		{"managed by another", []runtime.Object{edited(addressOf("gone"), unmanaged)}, nil, ""},
		{"modified", []runtime.Object{edited(addressOf("web"), gateway)}, remake[:1], "IPAddressNotAllocated"},
		{"of a Service with another", []runtime.Object{service("web", "None"), addressOf("web")}, remake[:1], "IPAddressWrongReference"},
		{"of one that has none any more", []runtime.Object{external, addressOf("web")}, remake[:1], "IPAddressWrongReference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				add(w, c.objects...)
				w.Run(New())
				time.Sleep(grace + time.Second)
				w.Settle()
				if diff := cmp.Diff(c.writes, w.Changes()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				events := w.Events.List()
				if c.events == "" && len(events) > 0 || c.events != "" && !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, c.events) }) {
					t.Errorf("events %v, want %s", events, c.events)
				}
				time.Sleep(24 * time.Hour)
				w.Settle()
				if writes := w.Writes(); len(writes) > 0 {
					t.Errorf("an unchanged world was written to: %v", writes)
				}
			})
		})
	}
}

func add(w *reconciletest.World, objects ...runtime.Object) {
	reconciletest.Add(w, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}})
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			reconciletest.Add(w, o)
		case *networkingv1.IPAddress:
			reconciletest.Add(w, o)
		}
	}
}

// TestAServiceMayTakeAMinute to come after its IPAddress.
func TestAServiceMayTakeAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add(w, addressOf("web"))
		w.Run(New())
		time.Sleep(grace - 2*time.Second)
		w.Settle()
		reconciletest.Add(w, service("web", ip))
		time.Sleep(time.Hour)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("%v", writes)
		}
	})
}

// TestADeletedAddressComesBack, and one that stays behind goes.
func TestADeletedAddressComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add(w, service("web", ip), addressOf("web"))
		w.Run(New())
		w.Settle()
		w.Delete(addressOf("web"))
		w.Settle()
		if diff := cmp.Diff([]string{"create ipaddresses /" + ip}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		w.Delete(service("web", ip))
		time.Sleep(grace + time.Second)
		w.Settle()
		if diff := cmp.Diff([]string{"delete ipaddresses /" + ip}, w.Writes()); diff != "" {
			t.Error(diff)
		}
	})
}
