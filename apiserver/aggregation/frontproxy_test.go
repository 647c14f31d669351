package aggregation

import (
	"errors"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestNobodyIsToldOfAnAuthorityOfLongAgo: a server that does not know yet which one counts neither uses nor tells of the first one, and
// tells the rest.
func TestNobodyIsToldOfAnAuthorityOfLongAgo(t *testing.T) {
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := trust.NewFrontProxyRing(ca)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	p := NewFrontProxy(authorities, ready, time.Now)
	told, err := p.Configuration(ca)
	if _, says := told[requestHeaderCAs]; says || !errors.Is(err, errNotReady) || told["client-ca-file"] != string(ca.CertPEM()) {
		t.Errorf("before: %v, %v", told, err)
	}
	if _, err := p.Certificate(); !errors.Is(err, errNotReady) {
		t.Errorf("before: %v", err)
	}
	close(ready)
	if told, err = p.Configuration(ca); err != nil || !p.IsTold(told) {
		t.Errorf("after: %v, %v", told, err)
	}
	if _, err := p.Certificate(); err != nil {
		t.Errorf("after: %v", err)
	}
}
