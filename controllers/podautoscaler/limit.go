package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// downscaleStabilization is for how long a higher recommendation holds without a behavior that says so; upstream's.
const downscaleStabilization = 5 * time.Minute

// note is the reason and message of a condition.
type note struct{ reason, message string }

var (
	withinRange = note{"DesiredWithinRange", "the desired count is within the acceptable range"}
	tooFew      = note{"TooFewReplicas", "the desired replica count is less than the minimum replica count"}
	tooMany     = note{"TooManyReplicas", "the desired replica count is more than the maximum replica count"}
	tooFastUp   = note{"ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
	tooFastDown = note{"ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
	steady      = note{"ReadyForNewScale", "recommended size matches current size"}
	heldUp      = note{"ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"}
	heldDown    = note{"ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"}
)

// bounds are what a recommendation is limited by.
type bounds struct {
	current, min, max int32
	behavior          *autoscalingv2.HorizontalPodAutoscalerBehavior
	history           history
	now               time.Time
}

// stabilized is what recent recommendations make of a new one.
func (b bounds) stabilized(wanted int32) (int32, note) {
	if b.behavior == nil {
		highest := wanted
		for _, r := range b.history.recommendations {
			if !r.at.Before(b.now.Add(-downscaleStabilization)) {
				highest = max(highest, r.replicas)
			}
		}
		return highest, heldDown
	}
	lowest, highest := wanted, wanted
	upFrom := b.now.Add(-window(b.behavior.ScaleUp, 0))
	downFrom := b.now.Add(-window(b.behavior.ScaleDown, downscaleStabilization))
	for _, r := range b.history.recommendations {
		if r.at.After(upFrom) {
			lowest = min(lowest, r.replicas)
		}
		if r.at.After(downFrom) {
			highest = max(highest, r.replicas)
		}
	}
	held := heldDown
	if wanted >= b.current {
		held = heldUp
	}
	return min(max(b.current, lowest), highest), held
}

// earliest is how far the windows look back.
func (b bounds) earliest() time.Time {
	if b.behavior == nil {
		return b.now.Add(-downscaleStabilization)
	}
	return b.now.Add(-max(window(b.behavior.ScaleUp, 0), window(b.behavior.ScaleDown, downscaleStabilization)))
}

func window(rules *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Duration {
	if rules == nil || rules.StabilizationWindowSeconds == nil {
		return otherwise
	}
	return time.Duration(*rules.StabilizationWindowSeconds) * time.Second
}

// limited is what the range and the rates leave of a stabilized recommendation.
func (b bounds) limited(wanted int32) (int32, note) {
	if b.behavior == nil {
		return b.byRange(wanted)
	}
	switch {
	case wanted > b.current:
		most, why := b.max, tooMany
		if rate := max(b.upTo(), b.current); most > rate {
			most, why = rate, tooFastUp
		}
		if wanted > most {
			return most, why
		}
	case wanted < b.current:
		least, why := b.min, tooFew
		if rate := min(b.downTo(), b.current); least < rate {
			least, why = rate, tooFastDown
		}
		if wanted < least {
			return least, why
		}
	}
	return wanted, withinRange
}

// byRange knows one rate: twice as many, or 4.
func (b bounds) byRange(wanted int32) (int32, note) {
	most, why := b.max, tooMany
	if rate := clip(max(2*int64(b.current), 4)); most > rate {
		most, why = rate, tooFastUp
	}
	switch {
	case wanted < b.min:
		return b.min, tooFew
	case wanted > most:
		return most, why
	}
	return wanted, withinRange
}

// upTo and downTo are the numbers that the policies allow to reach now.
func (b bounds) upTo() int32 {
	return b.reach(b.behavior.ScaleUp, func(start int64, p autoscalingv2.HPAScalingPolicy) int64 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start + int64(p.Value)
		}
		return int64(ceil(float64(start) * (1 + float64(p.Value)/100)))
	}, 1)
}

func (b bounds) downTo() int32 {
	return b.reach(b.behavior.ScaleDown, func(start int64, p autoscalingv2.HPAScalingPolicy) int64 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start - int64(p.Value)
		}
		return int64(float64(start) * (1 - float64(p.Value)/100))
	}, -1)
}

// reach asks every policy; direction is 1 for up, -1 for down.
func (b bounds) reach(
	rules *autoscalingv2.HPAScalingRules, policy func(int64, autoscalingv2.HPAScalingPolicy) int64, direction int64,
) int32 {
	choice := autoscalingv2.MaxChangePolicySelect
	if rules == nil {
		return clip(direction * math.MaxInt32) // nothing limits it
	}
	if rules.SelectPolicy != nil {
		choice = *rules.SelectPolicy
	}
	if choice == autoscalingv2.DisabledPolicySelect {
		return b.current
	}
	farthest := choice != autoscalingv2.MinChangePolicySelect
	result := direction * math.MaxInt32
	if farthest {
		result = -result
	}
	for _, p := range rules.Policies {
		period := time.Duration(p.PeriodSeconds) * time.Second
		start := int64(b.current) - within(b.history.ups, period, b.now) + within(b.history.downs, period, b.now)
		reached := policy(start, p)
		if farther := direction*reached > direction*result; farther == farthest {
			result = reached
		}
	}
	return clip(result)
}
