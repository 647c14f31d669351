package discovery

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestEndpointSliceCountsItsChanges(t *testing.T) {
	old := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	old.Generation = 2
	for name, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		want   int64
	}{
		"nothing":     {func(*discoveryv1.EndpointSlice) {}, 2},
		"annotations": {func(s *discoveryv1.EndpointSlice) { s.Annotations = map[string]string{"a": "b"} }, 2},
		"labels":      {func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} }, 3},
		"endpoints":   {func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{{}} }, 3},
		"ports":       {func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{{}} }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			slice := old.DeepCopy()
			test.change(slice)
			prepareEndpointSliceUpdate(slice, old)
			if slice.Generation != test.want {
				t.Errorf("generation = %d, want %d", slice.Generation, test.want)
			}
		})
	}
}
