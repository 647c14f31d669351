package numbers

import (
	"maps"
	"sync"
)

// ClaimCreation says how and for whom the creation of a ResourceClaim ended. All fields are labels of upstream's metric.
type ClaimCreation struct {
	Status                string // "success" or "failure"
	Admin                 bool   // whether it asks for admin access
	OwnerGroup, OwnerKind string // group and kind of who controls it
}

// ClaimState is what ResourceClaims are counted by. Its fields are labels of upstream's metric.
type ClaimState struct {
	Allocated, Admin bool
	Source           string // "resource_claim_template", "extended_resource", or empty: somebody made it
}

// Devices has what only the controllers of devices count: resource claims and device taint eviction. The zero value is empty and
// ready; methods of a nil one do nothing.
type Devices struct {
	mu        sync.Mutex
	creations map[ClaimCreation]uint64
	claims    func() map[ClaimState]int
}

// DeviceCounts are what /metrics shows, under upstream's names.
type DeviceCounts struct {
	Creations map[ClaimCreation]uint64
	// Claims are those that exist; nil while no controller of them acts.
	Claims map[ClaimState]int
}

// Begin says that a controller of ResourceClaims acts from now on; claims is asked until End.
func (d *Devices) Begin(claims func() map[ClaimState]int) { d.ask(claims) }

// End says that the controller's turn is over.
func (d *Devices) End() { d.ask(nil) }

func (d *Devices) ask(claims func() map[ClaimState]int) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims = claims
}

// Created counts an attempt to create a ResourceClaim.
func (d *Devices) Created(how ClaimCreation) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.creations == nil {
		d.creations = map[ClaimCreation]uint64{}
	}
	d.creations[how]++
}

// Counts are those of this moment.
func (d *Devices) Counts() DeviceCounts {
	if d == nil {
		return DeviceCounts{}
	}
	d.mu.Lock()
	counts := DeviceCounts{Creations: maps.Clone(d.creations)}
	claims := d.claims
	d.mu.Unlock()
	if claims != nil {
		counts.Claims = claims() // takes locks of its own
	}
	return counts
}
