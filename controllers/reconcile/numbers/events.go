package numbers

import "sync/atomic"

// Events counts the events of all loops: each that was made is sent, merged away or lost in the end.
type Events struct {
	// Made are those that loops wanted, Sent those that the API took.
	Made, Sent atomic.Uint64
	// Limited are those that were left out because their object had too many; Dropped those for which there was no room,
	// Refused those that the API did not take.
	Limited, Dropped, Refused atomic.Uint64
}

// EventReport is Events at one moment.
type EventReport struct {
	Made    uint64 `json:"made"`
	Sent    uint64 `json:"sent"`
	Limited uint64 `json:"limited"`
	Dropped uint64 `json:"dropped"`
	Refused uint64 `json:"refused"`
}

// Report tells how many there were.
func (e *Events) Report() EventReport {
	return EventReport{
		Made: e.Made.Load(), Sent: e.Sent.Load(), Limited: e.Limited.Load(), Dropped: e.Dropped.Load(), Refused: e.Refused.Load(),
	}
}

// Lost are those that nobody will see.
func (r EventReport) Lost() uint64 { return r.Limited + r.Dropped + r.Refused }
