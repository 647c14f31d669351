package rotate

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// TestOrdersOfTheCommandLine: what flags mean, and which exclude each other.
func TestOrdersOfTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		o     options
		kind  rotation.Kind
		keeps bool
		want  string
		err   error
	}{
		"begin":            {options{}, rotation.AccountKey, false, rotations.Begin, nil},
		"begin, kept":      {options{keepOld: time.Minute}, rotation.AccountKey, true, rotations.Begin + " 1m0s", nil},
		"status":           {options{status: true}, rotation.Serving, false, rotations.Status, nil},
		"abort":            {options{abort: true}, rotation.Serving, false, rotations.Abort, nil},
		"both":             {options{abort: true, status: true}, rotation.Serving, false, "", errBoth},
		"abort, kept":      {options{abort: true}, rotation.AccountKey, true, "", errBoth},
		"what is not kind": {options{}, "sa", false, "", rotation.ErrKind},
		"not built":        {options{status: true}, rotation.Tokens, false, "", rotation.ErrNotBuilt},
	} {
		order, err := c.o.order(c.kind, c.keeps)
		got := order.Order
		if order.KeepOld != nil {
			got += " " + order.KeepOld.Duration.String()
		}
		if !errors.Is(err, c.err) || err == nil && (got != c.want || order.Kind != c.kind) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// TestWhatBecameOfAnOrder: whether it began something is said first.
func TestWhatBecameOfAnOrder(t *testing.T) {
	for want, c := range map[string]struct {
		order string
		p     rotation.Progress
	}{
		"sa-key was never rotated":           {rotations.Status, rotation.Progress{}},
		"begun: sa-key: rotation 1":          {rotations.Begin, rotation.Progress{State: rotation.State{Phase: rotation.Trust}, Changed: true}},
		"it was under way already: sa-key: ": {rotations.Begin, rotation.Progress{State: rotation.State{Phase: rotation.Trust}}},
		"it was under way already, and the old one is kept for 1h0m0s now: sa-key: rotation 1": {rotations.Begin, rotation.Progress{
			State: rotation.State{Phase: rotation.Trust, KeepOld: metav1.Duration{Duration: time.Hour}}, Changed: true, WasUnderWay: true,
		}},
		"it goes back: sa-key: ":         {rotations.Abort, rotation.Progress{State: rotation.State{Phase: rotation.Use}, Changed: true}},
		"it goes back already: sa-key: ": {rotations.Abort, rotation.Progress{State: rotation.State{Phase: rotation.Use}}},
	} {
		c.p.Kind, c.p.Generation = rotation.AccountKey, 1
		if got := line(rotations.Order{Kind: rotation.AccountKey, Order: c.order}, c.p); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
