package devices

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// unseenMax is how long the caches may take to show a claim that was made. Upstream's.
const unseenMax = 2 * time.Minute

// promises are the devices of claims that the caches do not show as allocated yet, by the claims' uids.
type promises map[types.UID]*promise

type promise struct {
	Allocation
	// written is the claim as it was stored with its devices; nil until then.
	written *resourcev1.ResourceClaim
	since   time.Time // when that was heard of
}

// uid is that of the claim as it is stored.
func (p *promise) uid() types.UID {
	if p.written != nil {
		return p.written.UID
	}
	return p.Claim.UID
}

// Version changes whenever something is promised or a promise ends without having been written.
func (w *World) Version() uint64 { return w.version }

// Promise keeps the devices from others.
func (w *World) Promise(all []Allocation) {
	w.version++
	for _, a := range all {
		if a.Result != nil {
			w.promises[a.Claim.UID] = &promise{Allocation: a}
		}
	}
}

// Written tells that the claims, the first ones of all, are stored with their devices, as they are given here. The promises end
// when the caches know.
func (w *World) Written(all []Allocation, claims []*resourcev1.ResourceClaim) {
	for i, claim := range claims {
		if p := w.promises[all[i].Claim.UID]; p != nil {
			p.written, p.since = claim, time.Now()
		}
	}
}

// Gone ends the promises of claims that were deleted.
func (w *World) Gone(claims []*resourcev1.ResourceClaim) {
	w.version++
	for _, claim := range claims {
		for key, p := range w.promises {
			if p.uid() == claim.UID {
				delete(w.promises, key)
			}
		}
	}
}

// Forget ends the promises that were not written, and never will be.
func (w *World) Forget(all []Allocation) {
	w.version++
	for _, a := range all {
		if p := w.promises[a.Claim.UID]; a.Result != nil && p != nil && p.written == nil {
			delete(w.promises, a.Claim.UID)
		}
	}
}

// prune ends the promises that the caches know of.
func (p promises) prune(claims resourcelisters.ResourceClaimLister, now time.Time) {
	for key, promise := range p {
		if promise.written == nil {
			continue
		}
		claim, err := claims.ResourceClaims(promise.written.Namespace).Get(promise.written.Name)
		if err != nil && promise.Mappings != nil && now.Sub(promise.since) < unseenMax {
			continue // the claim is new: the caches may not know it yet
		}
		if err != nil || claim.UID != promise.written.UID || claim.Status.Allocation != nil || isSince(claim, promise.written) {
			delete(p, key)
		}
	}
}

// isSince tells whether a is the same version as b or a later one.
func isSince(a, b *resourcev1.ResourceClaim) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order >= 0
}

// allocated is what the claims have, and what is promised.
func (p promises) allocated(claims []*resourcev1.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	seen := map[types.UID]bool{}
	for _, claim := range claims {
		if claim.Status.Allocation != nil {
			seen[claim.UID] = true
			count(&state, claim.Status.Allocation)
		}
	}
	for _, promise := range p {
		if !seen[promise.uid()] {
			count(&state, promise.Result)
		}
	}
	return state
}

// count adds the devices of one claim. Those that it has for administration only stay free for others.
func count(state *structured.AllocatedState, allocation *resourcev1.AllocationResult) {
	for i := range allocation.Devices.Results {
		r := &allocation.Devices.Results[i]
		device := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case r.AdminAccess != nil && *r.AdminAccess:
		case r.ShareID == nil:
			state.AllocatedDevices.Insert(device)
		default:
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(device, r.ShareID))
			if r.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(device, r.ConsumedCapacity))
			}
		}
	}
}
