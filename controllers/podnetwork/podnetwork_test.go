package podnetwork

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

func TestParse(t *testing.T) {
	const dual, services = "10.42.0.0/16,fd42::/56", "10.96.0.0/16,fd96::/112"
	for _, c := range []struct {
		Flags
		want error
	}{
		{Flags{}, nil}, {Flags{CIDR: "10.40.0.0/14"}, nil}, {Flags{NodeMaskSize: 26}, nil},
		{Flags{CIDR: "192.168.0.0/20", NodeMaskSize: 26}, nil}, {Flags{CIDR: "10.0.0.0/12", NodeMaskSize: 28}, nil},
		{Flags{CIDR: "10.96.128.0/17"}, ErrOverlap}, {Flags{CIDR: "10.0.0.0/8", NodeMaskSize: 24}, ErrOverlap},
		{Flags{CIDR: "10.96.0.0/16", Services: "172.30.0.0/20"}, nil}, {Flags{Services: "10.42.3.0/24"}, ErrOverlap},
		{Flags{CIDR: "x"}, ErrCIDR}, {Flags{CIDR: "10.42.0.1/16"}, ErrCIDR}, {Flags{CIDR: "10.42.0.0"}, ErrCIDR},
		{Flags{CIDR: "10.42.0.0/25"}, ErrNodeMaskSize}, {Flags{NodeMaskSize: 15}, ErrNodeMaskSize},
		{Flags{NodeMaskSize: 31}, ErrNodeMaskSize}, {Flags{NodeMaskSize: -1}, ErrNodeMaskSize},
		{Flags{CIDR: "172.16.0.0/12", NodeMaskSize: 29}, ErrNodeMaskSize}, {Flags{Services: "172.30.0.0/29"}, servicerange.ErrFlag},

		{Flags{CIDR: dual, Services: services}, nil}, {Flags{CIDR: dual, Services: services, NodeMaskSize6: 72}, nil},
		{Flags{CIDR: "10.42.0.0/16,fd42::/48", Services: services, NodeMaskSize: 25}, nil},
		{Flags{CIDR: "fd42::/64", NodeMaskSize: 80}, ErrCIDR}, {Flags{CIDR: "fd42::/56,10.42.0.0/16", Services: services}, ErrCIDR},
		{Flags{CIDR: "10.42.0.0/16,10.43.0.0/16", Services: services}, ErrCIDR}, {Flags{CIDR: dual + ",fd43::/56", Services: services}, ErrCIDR},
		{Flags{CIDR: "10.42.0.0/16,fd42::1/56", Services: services}, ErrCIDR},
		{Flags{Services: "fd96::/112"}, servicerange.ErrFlag}, {Flags{Services: "fd96::/112,10.96.0.0/16"}, servicerange.ErrFlag},
		{Flags{CIDR: dual}, ErrFamilies}, {Flags{Services: services}, ErrFamilies}, {Flags{CIDR: "10.42.0.0/16", Services: services}, ErrFamilies},
		{Flags{CIDR: "10.42.0.0/16,fd96::/56", Services: services}, ErrOverlap},
		{Flags{CIDR: "10.42.0.0/16,fd42::/40", Services: services}, ErrNodeMaskSize6},
		{Flags{CIDR: dual, Services: services, NodeMaskSize6: 55}, ErrNodeMaskSize6},
		{Flags{CIDR: "10.42.0.0/16,fd42::/112", Services: services, NodeMaskSize6: 127}, ErrNodeMaskSize6},
		{Flags{NodeMaskSize6: 64}, ErrNotDual},
	} {
		if _, err := Parse(c.Flags); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v, want %v", c.Flags, err, c.want)
		}
	}
}

func TestRange(t *testing.T) {
	n := Default()
	for text, want := range map[string]bool{
		"10.42.0.0/24": true, "10.42.255.0/24": true,
		"": false, "10.43.0.0/24": false, "10.42.0.0/16": false, "10.42.0.0/25": false, "10.42.0.1/24": false, "0.0.0.0/1": false, "fd00::/24": false,
	} {
		if _, got := n.Range(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestEditedServiceCIDR: what somebody adds to it ends no server that was started as before, nor is it replaced.
func TestEditedServiceCIDR(t *testing.T) {
	client := fake.NewClientset(&networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: ServiceCIDR}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd97::/112"}},
	})
	if err := Write(t.Context(), client, Default()); err != nil {
		t.Fatal(err)
	}
	if wanted, write, err := Judge(t.Context(), client, Network{}); err != nil || write || wanted != Default() {
		t.Errorf("%+v, %v, %v", wanted, write, err)
	}
	for services, want := range map[string]error{"10.96.0.0/16,fd96::/112": ErrServicesStay, "10.96.0.0/16,fd97::/112": nil} {
		asked, err := Parse(Flags{CIDR: "10.42.0.0/16,fd42::/56", Services: services})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Judge(t.Context(), client, asked); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v", services, err)
		}
	}
}

// TestInForce: what is written is read again, and who may change to what.
func TestInForce(t *testing.T) {
	single, dual := Flags{}, Flags{CIDR: "10.42.0.0/16,fd42::/56", Services: "10.96.0.0/16,fd96::/112"}
	larger := Flags{CIDR: "10.40.0.0/14,fd42::/52", Services: dual.Services}
	elsewhere := Flags{CIDR: "10.42.0.0/16,fd43::/56", Services: dual.Services}
	otherServices := Flags{CIDR: dual.CIDR, Services: "10.96.0.0/16,fd97::/112"}
	for name, c := range map[string]struct {
		from, to Flags
		node     []string
		want     error
	}{
		"the same": {single, single, []string{"10.42.0.0/24"}, nil}, "the same two": {dual, dual, []string{"10.42.0.0/24", "fd42::/64"}, nil},
		"a second family":         {single, dual, []string{"10.42.0.0/24"}, nil},
		"no second family":        {dual, single, nil, ErrServicesStay},
		"other Services":          {dual, otherServices, nil, ErrServicesStay},
		"larger ones":             {dual, larger, []string{"10.42.0.0/24", "fd42::/64"}, nil},
		"elsewhere":               {dual, elsewhere, []string{"10.42.0.0/24", "fd42::/64"}, ErrNodesDoNotFit},
		"elsewhere, nobody there": {dual, elsewhere, []string{"10.42.0.0/24"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := Parse(c.from)
			if err != nil {
				t.Fatal(err)
			}
			from = from.Or(Default())
			client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{PodCIDRs: c.node}},
				&networkingv1.ServiceCIDR{
					ObjectMeta: metav1.ObjectMeta{Name: ServiceCIDR},
					Spec:       networkingv1.ServiceCIDRSpec{CIDRs: servicerange.Texts(from.Services, from.Services6)},
				})
			if err := Write(t.Context(), client, from); err != nil {
				t.Fatal(err)
			}
			if got, found, err := Read(t.Context(), client); got != from || !found || err != nil {
				t.Errorf("read %+v, %v, %v", got, found, err)
			}
			to, err := Parse(c.to)
			if err != nil {
				t.Fatal(err)
			}
			wanted, write, err := Judge(t.Context(), client, to)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("judged %v", err)
			}
			if want := to.Or(Default()); err == nil && (wanted != want || write != (want != from)) {
				t.Errorf("wanted %+v, write %v", wanted, write)
			}
		})
	}
}
