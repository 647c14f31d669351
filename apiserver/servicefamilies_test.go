package apiserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newDualServer is of a cluster with Services of both families.
func newDualServer(t *testing.T) *Server {
	t.Helper()
	server, _ := newServer(t)
	mustDo[networkingv1.ServiceCIDR](t, server, call{method: "POST", path: rangePath, body: rangeBody("kubernetes", `10.96.0.0/16","fd96::/112`)})
	return server
}

// familiesOf are the policy and families of a Service, such as "PreferDualStack 46"; it fails if the addresses are of others.
func familiesOf(t *testing.T, s *corev1.Service) string {
	t.Helper()
	if s.Spec.IPFamilyPolicy == nil {
		return strings.TrimSpace(fmt.Sprint("none ", s.Spec.IPFamilies, s.Spec.ClusterIPs))
	}
	var families, addresses strings.Builder
	for _, f := range s.Spec.IPFamilies {
		families.WriteString(strings.TrimPrefix(string(f), "IPv"))
	}
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
			addresses.WriteString("4")
		} else if err == nil {
			addresses.WriteString("6")
		}
	}
	if s.Spec.ClusterIP != s.Spec.ClusterIPs[0] || s.Spec.ClusterIP != corev1.ClusterIPNone && addresses.String() != families.String() {
		t.Errorf("families %v, addresses %q, %v", s.Spec.IPFamilies, s.Spec.ClusterIP, s.Spec.ClusterIPs)
	}
	return string(*s.Spec.IPFamilyPolicy) + " " + families.String()
}

// TestFamiliesOfNewServices: upstream's rules (KEP-563) in a cluster of IPv4, and in one of both families, IPv4 first.
func TestFamiliesOfNewServices(t *testing.T) {
	const (
		notDual    = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services"
		notHere    = "not configured on this cluster"
		twoIPs     = "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"
		twoFamiles = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
	)
	tests := []struct{ spec, single, dual string }{
		{``, "SingleStack 4", "SingleStack 4"},
		{`,"ipFamilyPolicy":"SingleStack"`, "SingleStack 4", "SingleStack 4"},
		{`,"ipFamilyPolicy":"PreferDualStack"`, "PreferDualStack 4", "PreferDualStack 46"},
		{`,"ipFamilyPolicy":"RequireDualStack"`, notDual, "RequireDualStack 46"},
		{`,"ipFamilies":["IPv4"]`, "SingleStack 4", "SingleStack 4"},
		{`,"ipFamilies":["IPv6"]`, `spec.ipFamilies[0]: Invalid value: "IPv6": ` + notHere, "SingleStack 6"},
		{`,"ipFamilies":["IPv6"],"ipFamilyPolicy":"PreferDualStack"`, notHere, "PreferDualStack 64"},
		{`,"ipFamilies":["IPv6"],"ipFamilyPolicy":"RequireDualStack"`, notDual, "RequireDualStack 64"},
		{`,"ipFamilies":["IPv4","IPv6"]`, twoFamiles, twoFamiles},
		{`,"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"PreferDualStack"`, notHere, "PreferDualStack 64"},
		{`,"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"RequireDualStack"`, notDual, "RequireDualStack 64"},
		{`,"clusterIP":"10.96.7.7"`, "SingleStack 4", "SingleStack 4"},
		{`,"clusterIP":"fd96::77"`, "spec.clusterIPs[0]: Invalid value: [\"fd96::77\"]: IPv6 is not configured on this cluster", "SingleStack 6"},
		{`,"clusterIP":"fd96::77","ipFamilyPolicy":"PreferDualStack"`, "IPv6 is not configured on this cluster", "PreferDualStack 64"},
		{`,"clusterIP":"10.96.7.7","ipFamilyPolicy":"RequireDualStack"`, notDual, "RequireDualStack 46"},
		{`,"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7","fd96::77"]`, twoIPs, twoIPs},
		{`,"clusterIP":"fd96::77","clusterIPs":["fd96::77","10.96.7.7"],"ipFamilyPolicy":"PreferDualStack"`, "IPv6 is not configured on this cluster", "PreferDualStack 64"},
		{`,"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7","fd96::77"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"RequireDualStack"`, "IPv6 is not configured", "RequireDualStack 46"},
		{`,"clusterIP":"10.96.7.7","ipFamilies":["IPv6"]`, "spec.clusterIPs[0]: Invalid value: \"10.96.7.7\": expected an IPv6 value as indicated by `ipFamilies[0]`",
			"expected an IPv6 value as indicated by `ipFamilies[0]`"},
		{`,"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7","10.96.7.8"],"ipFamilyPolicy":"PreferDualStack"`, "may specify no more than one IP for each IP family", "may specify no more than one IP for each IP family"},
		{`,"clusterIPs":["10.96.7.7"]`, "spec.clusterIPs: Invalid value: [\"10.96.7.7\"]: must be empty when `clusterIP` is not specified", "spec.clusterIPs: Invalid value: [\"10.96.7.7\"]: must be empty when `clusterIP` is not specified"},
		{`,"clusterIPs":["None"]`, "must be empty when `clusterIP` is not specified", "must be empty when `clusterIP` is not specified"},
		{`,"ipFamilies":["IPv4","IPv4"],"ipFamilyPolicy":"PreferDualStack"`, `spec.ipFamilies[1]: Duplicate value: "IPv4"`, `spec.ipFamilies[1]: Duplicate value: "IPv4"`},
		{`,"clusterIP":"fd97::1"`, "IPv6 is not configured on this cluster", "failed to allocate IP fd97::1: the provided network does not match the current range"},
		{`,"clusterIP":"None","selector":{"a":"b"}`, "SingleStack 4", "SingleStack 4"},
		{`,"clusterIP":"None","selector":{"a":"b"},"ipFamilyPolicy":"PreferDualStack"`, "PreferDualStack 4", "PreferDualStack 46"},
		{`,"clusterIP":"None","selector":{"a":"b"},"ipFamilyPolicy":"RequireDualStack"`, notDual, "RequireDualStack 46"},
		{`,"clusterIP":"None","selector":{"a":"b"},"ipFamilies":["IPv6"]`, notHere, "SingleStack 6"},
		{`,"clusterIP":"None"`, "RequireDualStack 46", "RequireDualStack 46"},
		{`,"clusterIP":"None","ipFamilies":["IPv6"]`, "RequireDualStack 64", "RequireDualStack 64"},
		{`,"clusterIP":"None","ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack"`, "SingleStack 6", "SingleStack 6"},
		{`,"clusterIP":"None","ipFamilyPolicy":"PreferDualStack"`, "PreferDualStack 46", "PreferDualStack 46"},
		{`,"clusterIP":"None","ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"SingleStack"`, twoFamiles, twoFamiles},
		{`,"clusterIP":"None","clusterIPs":["None","fd96::1"],"ipFamilyPolicy":"PreferDualStack"`, "'None' must be the first and only value", "'None' must be the first and only value"},
		{`,"type":"ExternalName","externalName":"example.org"`, "none [] []", "none [] []"},
		{`,"type":"ExternalName","externalName":"example.org","clusterIP":"10.96.0.77"`, "spec.clusterIPs: Forbidden: may not be set for ExternalName services", "spec.clusterIPs: Forbidden"},
		{`,"type":"ExternalName","externalName":"example.org","ipFamilies":["IPv4"]`, "may not be set for ExternalName services", "may not be set for ExternalName services"},
	}
	single, _ := newServer(t)
	dual := newDualServer(t)
	for _, test := range tests {
		for server, want := range map[*Server]string{single: test.single, dual: test.dual} {
			got := call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("s", test.spec)}
			if answer := got.do(t, server); answer.code == 422 {
				refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: want}.check(t, test.spec, answer)
				continue
			}
			made := mustDo[corev1.Service](t, server, got)
			if is := familiesOf(t, made); is != want {
				t.Errorf("%s (two families: %v): %q, want %q", test.spec, server == dual, is, want)
			}
		}
	}
}

// TestFamiliesOfChangedServices: a second address comes and goes with the policy, and the first stays.
func TestFamiliesOfChangedServices(t *testing.T) {
	const (
		merge       = "application/merge-patch+json"
		oneIP       = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary cluster IP"
		oneFamily   = "must be 'SingleStack' to release the secondary IP family"
		setOnce     = "may not change once set"
		single      = `,"clusterIP":"10.96.7.7"`
		dual        = `,"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7","fd96::77"],"ipFamilyPolicy":"RequireDualStack"`
		prefersDual = `,"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7","fd96::77"],"ipFamilyPolicy":"PreferDualStack"`
		elsewhere   = `,"clusterIP":"None"`
		name        = `,"type":"ExternalName","externalName":"example.org"`
	)
	for _, test := range []struct {
		from, patch, want string
		addresses         string // those that are shown afterwards
	}{
		{single, `{"spec":{"ipFamilyPolicy":"PreferDualStack"}}`, "PreferDualStack 46", "4 6"},
		{single, `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`, "RequireDualStack 46", "4 6"},
		{single, `{"spec":{"ipFamilyPolicy":"RequireDualStack","clusterIPs":["10.96.7.7","fd96::77"]}}`, "RequireDualStack 46", "4 6"},
		{single, `{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}}`, "RequireDualStack 46", "4 6"},
		{single, `{"spec":{"clusterIPs":["10.96.7.7","fd96::77"]}}`, "when multiple cluster IPs are specified", ""},
		{single, `{"spec":{"ipFamilies":["IPv4","IPv6"]}}`, "when multiple IP families are specified", ""},
		{single, `{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6","IPv4"],"clusterIPs":["fd96::77","10.96.7.7"],"clusterIP":"fd96::77"}}`, setOnce, ""},
		{single, `{"spec":{"ipFamilies":["IPv6"]}}`, setOnce, ""},
		{single, `{"spec":{"selector":{"a":"b"}}}`, "SingleStack 4", "4"},
		{single, `{"spec":{"ipFamilies":null,"ipFamilyPolicy":null}}`, "SingleStack 4", "4"},
		{dual, `{"spec":{"ipFamilyPolicy":"SingleStack"}}`, "SingleStack 4", "4"},
		{dual, `{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}}`, "SingleStack 4", "4"},
		{dual, `{"spec":{"ipFamilyPolicy":"SingleStack","clusterIPs":["10.96.7.7"]}}`, "SingleStack 4", "4"},
		{dual, `{"spec":{"clusterIPs":["10.96.7.7"]}}`, oneIP, ""},
		{dual, `{"spec":{"ipFamilies":["IPv4"]}}`, oneFamily, ""},
		{dual, `{"spec":{"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4"]}}`, oneFamily, ""},
		{dual, `{"spec":{"ipFamilyPolicy":"PreferDualStack"}}`, "PreferDualStack 46", "4 6"},
		{dual, `{"spec":{"ipFamilyPolicy":"SingleStack","clusterIPs":["fd96::77"],"clusterIP":"fd96::77"}}`, setOnce, ""},
		{dual, `{"spec":{"clusterIPs":["10.96.7.7","fd96::78"]}}`, setOnce, ""},
		{dual, `{"spec":{"ipFamilies":null,"ipFamilyPolicy":null,"clusterIPs":null,"clusterIP":null}}`, "RequireDualStack 46", "4 6"},
		{dual, `{"spec":{"type":"NodePort"}}`, "RequireDualStack 46", "4 6"},
		{dual, `{"spec":{"type":"ExternalName","externalName":"example.org"}}`, "none [] []", ""},
		{dual, `{"spec":{"type":"ExternalName","externalName":"example.org","ipFamilies":["IPv4"]}}`, "may not be set for ExternalName services", ""},
		{prefersDual, `{"metadata":{"labels":{"a":"b"}}}`, "PreferDualStack 46", "4 6"},
		{prefersDual, `{"spec":{"ipFamilyPolicy":"SingleStack"}}`, "SingleStack 4", "4"},
		{elsewhere, `{"spec":{"ipFamilyPolicy":"SingleStack"}}`, "SingleStack 4", ""},
		{elsewhere, `{"spec":{"ipFamilies":["IPv6","IPv4"]}}`, "RequireDualStack 64", ""},
		{name, `{"spec":{"type":"ClusterIP","externalName":null}}`, "SingleStack 4", "4"},
		{name, `{"spec":{"type":"ClusterIP","externalName":null,"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6"]}}`, "RequireDualStack 64", "6 4"},
		{name, `{"spec":{"type":"ClusterIP","externalName":null,"clusterIP":"fd96::77"}}`, "SingleStack 6", "6"},
	} {
		server := newDualServer(t)
		before := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("s", test.from)})
		patch := call{method: "PATCH", path: svcPath + "/s", contentType: merge, body: test.patch}
		if answer := patch.do(t, server); answer.code == 422 {
			refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: test.want}.check(t, test.from+test.patch, answer)
			continue
		}
		after := mustDo[corev1.Service](t, server, call{method: "GET", path: svcPath + "/s"})
		if got := familiesOf(t, after); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.from, test.patch, got, test.want)
		}
		if after.Spec.ClusterIP != before.Spec.ClusterIP && before.Spec.ClusterIP != "" && after.Spec.ClusterIP != "" {
			t.Errorf("%s %s: %s became %s", test.from, test.patch, before.Spec.ClusterIP, after.Spec.ClusterIP)
		}
		if got := shownAddresses(t, server, after); got != test.addresses {
			t.Errorf("%s %s: IPAddresses %q, want %q", test.from, test.patch, got, test.addresses)
		}
	}
}

// shownAddresses are the families of the IPAddresses that there are, in the order of the Service's addresses.
func shownAddresses(t *testing.T, server *Server, s *corev1.Service) string {
	t.Helper()
	list := mustDo[networkingv1.IPAddressList](t, server, call{method: "GET", path: addressPath})
	labels := map[string]string{}
	for _, address := range list.Items {
		labels[address.Name] = strings.TrimPrefix(address.Labels[networkingv1.LabelIPAddressFamily], "IPv")
	}
	var shown []string
	for _, ip := range s.Spec.ClusterIPs {
		if labels[ip] != "" {
			shown = append(shown, labels[ip])
		}
	}
	if len(labels) != len(shown) {
		t.Errorf("%v are shown, of %v", labels, s.Spec.ClusterIPs)
	}
	return strings.Join(shown, " ")
}

// TestPreferDualStackKeepsOneFamily: a cluster that gets a second family changes no Service that merely prefers two, until somebody
// asks for it; and what it releases can be had by the next.
func TestPreferDualStackKeepsOneFamily(t *testing.T) {
	server, _ := newServer(t)
	mustDo[networkingv1.ServiceCIDR](t, server, call{method: "POST", path: rangePath, body: rangeBody("kubernetes", "10.96.0.0/16")})
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("s", `,"ipFamilyPolicy":"PreferDualStack"`)})
	change := func(path, patch, want string) {
		t.Helper()
		answer := call{method: "PATCH", path: path, contentType: patchTypeOf["merge"], body: patch}.do(t, server)
		if answer.code != 200 {
			t.Fatalf("%s: %d %s", patch, answer.code, answer.body)
		}
		s := mustDo[corev1.Service](t, server, call{method: "GET", path: svcPath + "/s"})
		if got := familiesOf(t, s); got != want {
			t.Errorf("%s: %q, want %q", patch, got, want)
		}
	}
	change(rangePath+"/kubernetes", `{"spec":{"cidrs":["10.96.0.0/16","fd96::/112"]}}`, "PreferDualStack 4")
	change(svcPath+"/s", `{"metadata":{"labels":{"a":"b"}}}`, "PreferDualStack 4")
	change(svcPath+"/s", `{"spec":{"ipFamilies":["IPv4","IPv6"]}}`, "PreferDualStack 46")
	s := mustDo[corev1.Service](t, server, call{method: "GET", path: svcPath + "/s"})
	second := svcBody("t", `,"clusterIP":"`+s.Spec.ClusterIPs[1]+`"`)
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "provided IP is already allocated"}.check(t, "held",
		call{method: "POST", path: svcPath, body: second}.do(t, server))
	change(svcPath+"/s", `{"spec":{"ipFamilyPolicy":"SingleStack"}}`, "SingleStack 4")
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: second})
}

// TestRangesOfIPv6 give addresses in a cluster of both families, and none in one of IPv4.
func TestRangesOfIPv6(t *testing.T) {
	single, _ := newServer(t)
	for _, server := range []*Server{single, newDualServer(t)} {
		mustDo[networkingv1.ServiceCIDR](t, server, call{method: "POST", path: rangePath, body: rangeBody("more", "fd97::/126")})
		want := 201
		if server == single {
			want = 422
		}
		for ip, code := range map[string]int{"fd97::": 422, "fd97::1": want, "fd97::3": want} {
			if got := (call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("s", `,"clusterIP":"`+ip+`"`)}).do(t, server); got.code != code {
				t.Errorf("%s: %d %s", ip, got.code, got.body)
			}
		}
	}
}

// TestTheFlagsDecideFamilies: a range of IPv6 that somebody gives the cluster's own ServiceCIDR gives nothing, unless the network in
// force has IPv6.
func TestTheFlagsDecideFamilies(t *testing.T) {
	const ofSystem = "/api/v1/namespaces/kube-system/configmaps"
	server := newDualServer(t)
	mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"kube-system"}}`})
	network := func(method, path, ranges string) {
		t.Helper()
		body := `{"metadata":{"name":"pod-network"},"data":{"podCIDR":"10.42.0.0/16","serviceCIDR":"` + ranges + `"}}`
		mustDo[corev1.ConfigMap](t, server, call{method: method, path: path, body: body})
	}
	dual := call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("s", `,"ipFamilyPolicy":"RequireDualStack"`)}
	network("POST", ofSystem, "10.96.0.0/16")
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "not configured for dual-stack"}.check(t, "dual", dual.do(t, server))
	six := call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("s", `,"ipFamilies":["IPv6"]`)}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "not configured on this cluster"}.check(t, "IPv6", six.do(t, server))
	preferring := call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("s", `,"ipFamilyPolicy":"PreferDualStack"`)}
	if got := familiesOf(t, mustDo[corev1.Service](t, server, preferring)); got != "PreferDualStack 4" {
		t.Errorf("prefers both: %s", got)
	}
	network("PUT", ofSystem+"/pod-network", "10.96.0.0/16,fd96::/112")
	if got := familiesOf(t, mustDo[corev1.Service](t, server, dual)); got != "RequireDualStack 46" {
		t.Errorf("both are in force: %s", got)
	}
}
