package podnetwork

import (
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		cidr     string
		mask     int
		services string
		want     error
	}{
		{"", 0, "", nil}, {"10.40.0.0/14", 0, "", nil}, {"", 26, "", nil}, {"192.168.0.0/20", 26, "", nil}, {"10.0.0.0/12", 28, "", nil},
		{"10.96.128.0/17", 0, "", ErrOverlap}, {"10.0.0.0/8", 24, "", ErrOverlap}, {"10.96.0.0/16", 0, "172.30.0.0/20", nil}, {"", 0, "10.42.3.0/24", ErrOverlap},
		{"fd00::/64", 80, "", ErrCIDR}, {"x", 0, "", ErrCIDR}, {"10.42.0.1/16", 0, "", ErrCIDR}, {"10.42.0.0", 0, "", ErrCIDR},
		{"10.42.0.0/25", 0, "", ErrNodeMaskSize}, {"", 15, "", ErrNodeMaskSize}, {"", 31, "", ErrNodeMaskSize}, {"", -1, "", ErrNodeMaskSize},
		{"172.16.0.0/12", 29, "", ErrNodeMaskSize}, {"", 0, "172.30.0.0/29", servicerange.ErrFlag}, {"", 0, "10.97.0.0/16,fd00::/112", servicerange.ErrFlag},
	} {
		if _, err := Parse(c.cidr, c.mask, c.services); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%q, %d, %q: %v, want %v", c.cidr, c.mask, c.services, err, c.want)
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
