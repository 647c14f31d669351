package cpushare

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// together are all strangers, however many addresses they come from: they have the share of one tenant, and each of them the part of it
// that a tenant has of the processors, one half at most. So one address does not use up what they have together.
var together = shares.Holder{Name: "whoever asks without a name"}

// waitTogether is the second wait of a stranger's request, after that for his own time.
func (s *Share) waitTogether(ctx context.Context, h shares.Holder, units float64) error {
	if !h.Stranger || s.price.Load() == 0 {
		return nil
	}
	return s.waitFor(ctx, together, units)
}

// sleepTogether is that of a stranger's connection, which has waited for some of the time that it waits at most.
func (s *Share) sleepTogether(h shares.Holder, units float64, most time.Duration) {
	if h.Stranger && most > 0 {
		time.Sleep(s.owe(together, units, most))
	}
}

// divide says of the last period how many tenants took all that they got, the strangers together being one, and how many strangers took
// all of their part. all is what could have been done.
func (s *Share) divide(all float64) (tenants, strangers int) {
	var units, ofStrangers []float64
	for _, t := range s.tenants {
		if t.stranger {
			ofStrangers = append(ofStrangers, t.units)
		} else {
			units = append(units, t.units)
		}
	}
	tenants = pressing(units, all)
	return tenants, pressing(ofStrangers, all/float64(max(1, tenants)+1))
}
