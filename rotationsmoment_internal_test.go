package setpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/rotation"
)

// A moment that lasts is not to be missed, and nothing is too late before the old one is dropped.
func TestARotationIsKilledWhereItIsSaidToBe(t *testing.T) {
	held := rotation.State{Phase: rotation.Use, HeldSince: new(time.Now())}
	for at, missed := range map[point]bool{
		{rotation.Use, true}: false, {rotation.Trust, true}: true, {rotation.Trust, false}: false, {rotation.Done, false}: true,
	} {
		if at.isMissed(held) != missed {
			t.Errorf("%s is missed in %s: %t", at, pointOf(held), !missed)
		}
	}
	for _, one := range []struct {
		err  error
		now  rotation.Phase
		want bool
	}{
		{rotation.ErrTooLate, rotation.Trust, false}, {rotation.ErrTooLate, rotation.Use, false}, {rotation.ErrTooLate, rotation.Drop, true},
		{rotation.ErrNothing, rotation.Use, false}, {rotation.ErrNothing, rotation.Done, true}, {errors.New("no leader"), rotation.Done, false},
	} {
		if isTooLate(one.err, rotation.State{Phase: one.now}) != one.want {
			t.Errorf("%v in %s: too late: %t", one.err, one.now, !one.want)
		}
	}
}
