package raftstore

import (
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// FeatureLevel is the newest format of entries and snapshots that this release can
// apply. A release that adds a log operation or changes a format raises it.
const FeatureLevel = 1

// ErrFeatureLevel: the state needs a newer release.
var ErrFeatureLevel = replica.ErrFeatureLevel

func levelError(needed, have uint64) error {
	return fmt.Errorf("%w: feature level %d, this release has %d", ErrFeatureLevel, needed, have)
}
