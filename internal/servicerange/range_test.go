package servicerange

import (
	"errors"
	"net/netip"
	"testing"
)

func TestParse(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "10.96.0.0/16": true, "172.20.0.0/14": true, "10.96.0.0/12": true, "192.168.7.0/28": true,
		"10.96.0.0/16,fd96::/112": true, "10.96.0.0/16,fd96::/64": true, "10.96.0.0/16,2001:db8::/124": true,
		"10.96.0.1/16": false, "10.0.0.0/8": false, "192.168.7.0/29": false, "x": false, "10.96.0.0": false, "10.96.0.0/16,": false,
		"fd96::/112": false, "fd96::/112,10.96.0.0/16": false, "10.96.0.0/16,10.97.0.0/16": false, "10.96.0.0/16,fd96::/112,fd97::/112": false,
		"10.96.0.0/16,fd96::/63": false, "10.96.0.0/16,fd96::/125": false, "10.96.0.0/16,fd96::1/112": false,
		"::ffff:10.96.0.0/112": false, "10.96.0.0/16,::ffff:10.96.0.0/112": false, "10.96.0.0/16, fd96::/112": false,
	} {
		four, six, err := Parse(text)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrFlag) || ok && text != "" && Join(four, six) != text {
			t.Errorf("%q: %v, %v, %v", text, four, six, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string][2]string{
		"10.96.0.0/16": {"10.96.0.1", "10.96.0.10"}, "192.168.7.240/28": {"192.168.7.241", "192.168.7.250"},
		"fd96::/112": {"fd96::1", "fd96::a"},
	} {
		prefix := netip.MustParsePrefix(text)
		if got := [2]string{API(prefix).String(), DNS(prefix).String()}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if got := API(netip.Prefix{}).String(); got != "10.96.0.1" {
		t.Errorf("not said: %s", got)
	}
}
