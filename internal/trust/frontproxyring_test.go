package trust

import (
	"slices"
	"testing"
	"time"
)

// TestFrontProxyRing: it begins with the authority that follows from the cluster's, and takes what MakeFrontProxy has made.
func TestFrontProxyRing(t *testing.T) {
	ca := must[*CA](t)(NewCA(time.Now()))
	ring := must[*Ring[ProxyAuthority]](t)(NewFrontProxyRing(ca))
	first := must[*CA](t)(ca.FrontProxy()).Pin()
	text, id, err := MakeFrontProxy(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if added, err := ring.Add(text); err != nil || added != id || !slices.Equal(ring.IDs(), []string{first, id}) {
		t.Errorf("%s, %v: %v", added, err, ring.IDs())
	}
	if err := ring.Use(id); err != nil {
		t.Error(err)
	}
	if issued, err := ring.Used().IssueFrontProxy(time.Now()); err != nil || string(issued.CAPEM) != string(ring.Used().CertPEM()) {
		t.Errorf("it does not issue: %v", err)
	}
	if err := ring.Drop(first); err != nil || len(ring.IDs()) != 1 {
		t.Errorf("%v: %v", err, ring.IDs())
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "no key": ring.Used().CertPEM(), "another's key": append(slices.Clone(ca.CertPEM()), text...),
	} {
		if _, err := ring.Add(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
