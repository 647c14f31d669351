package server

import (
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/internal/unattended"
)

// TestUnattendedKindsAreServed in the version that is listed: the events are written by the monitor of that one.
func TestUnattendedKindsAreServed(t *testing.T) {
	all := kinds.All()
	for _, k := range unattended.Kinds() {
		if !slices.ContainsFunc(all, func(served *resource.Any) bool {
			return served.GroupVersionResource() == k.Resource && served.GroupVersionKind.Kind == k.Name
		}) {
			t.Errorf("%s %v is not served", k.Name, k.Resource)
		}
	}
}
