package cluster

import (
	"testing"
)

func TestNameOf(t *testing.T) {
	for id, want := range map[string]string{"server-1": "server-1", "server-2+0a1b2c3d": "server-2", "": ""} {
		if got := nameOf(id); got != want {
			t.Errorf("nameOf(%q) = %q, want %q", id, got, want)
		}
	}
}
