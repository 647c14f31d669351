package endpoints

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// addressesMax is how many addresses Endpoints hold; EndpointSlices hold all.
const addressesMax = 1000

// truncate leaves out what is above addressesMax, first addresses that are not ready. Each
// subset keeps its part, rounded up, as long as there is room.
func truncate(subsets []corev1.EndpointSubset) ([]corev1.EndpointSubset, bool) {
	ready, notReady := 0, 0
	for _, s := range subsets {
		ready, notReady = ready+len(s.Addresses), notReady+len(s.NotReadyAddresses)
	}
	if ready+notReady <= addressesMax {
		return subsets, false
	}
	if ready > addressesMax {
		share := shares(ready, addressesMax)
		for i := range subsets {
			subsets[i].Addresses, subsets[i].NotReadyAddresses = share(subsets[i].Addresses), nil
		}
		return subsets, true
	}
	share := shares(notReady, addressesMax-ready)
	for i := range subsets {
		subsets[i].NotReadyAddresses = share(subsets[i].NotReadyAddresses)
	}
	return subsets, true
}

// shares cuts lists of total addresses down to room altogether.
func shares(total, room int) func(list []corev1.EndpointAddress) []corev1.EndpointAddress {
	left := room
	return func(list []corev1.EndpointAddress) []corev1.EndpointAddress {
		part := float64(len(list)) / float64(total) // in upstream's order of operations, for the same rounding
		kept := min(int(math.Ceil(part*float64(room))), left, len(list))
		left -= kept
		return list[:kept]
	}
}
