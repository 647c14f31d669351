package network

import (
	"net/netip"
	"testing"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// TestTablesCanBeListed: nft and firewalld list the rules of the whole machine, ours too.
func TestTablesCanBeListed(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "listed", HostPort{Protocol: 6, Port: 8081, PodPort: 80})
	translation := newTranslation(t)
	translation.SetRanges(Ranges{
		Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16"),
		Pods6: netip.MustParsePrefix("fd00:199::/64"), Services6: netip.MustParsePrefix("fd00:197::/112"),
	})
	port := external(staying(tcp("0.0.0.0:30080", "10.199.7.2:80")))
	port.KeepsSource, port.Outside, port.Sources = true, port.Endpoints, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	translate(t, translation, port, staying(tcp("10.197.0.8:80", "10.199.7.2:80", "10.199.7.3:80")), tcp("10.197.0.9:80", "10.199.7.2:80"),
		staying(tcp("[fd00:197::8]:80", "[fd00:199::2]:80")), tcp("[fd00:197::9]:80", "[fd00:199::2]:80"))
	t.Cleanup(func() { check(t, translation.Replace(nil)) })
	if rules := networktest.Listable(t); rules < 60 {
		t.Errorf("only %d rules were seen", rules)
	}
}
