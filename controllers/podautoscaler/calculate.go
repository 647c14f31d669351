package podautoscaler

import (
	"errors"
	"math"
	"math/bits"
	"time"
)

// sample is what one pod uses, in thousandths.
type sample struct {
	value  int64
	at     time.Time
	window time.Duration
}

// tolerances are the shares by which usage may be off its target without an effect.
type tolerances struct{ down, up float64 }

func (t tolerances) within(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// load is how pods compare with the target.
type load struct {
	ratio       float64
	utilization int32 // percent of what they request; of resources only
	average     int64 // of a pod, in thousandths
}

var (
	errNoPods    = errors.New("no pods returned by selector while calculating replica count")
	errNoSamples = errors.New("did not receive metrics for targeted pods (pods might be unready)")
	errNoRequest = errors.New("no metrics returned matched known pods")
)

// gauge is how the samples of pods are compared with a target.
type gauge interface {
	measure(samples map[string]sample) (load, error)
	// full is what a pod without a sample is taken to use when the others ask for fewer pods.
	full(pod string) int64
}

// plain compares the average of all samples with a value.
type plain struct{ target int64 }

func (g plain) full(string) int64 { return g.target }

func (g plain) measure(samples map[string]sample) (load, error) {
	var total int64
	for _, s := range samples {
		total = add(total, s.value)
	}
	average := total / int64(len(samples))
	return load{ratio: float64(average) / float64(g.target), average: average}, nil
}

// utilization compares the sum of all samples with the sum of what their pods request.
type utilization struct {
	target   int32
	requests map[string]int64
}

func (g utilization) full(pod string) int64 {
	return percent(g.requests[pod], int64(max(100, g.target)))
}

func (g utilization) measure(samples map[string]sample) (load, error) {
	var total, requests, count int64
	for pod, s := range samples {
		if request, known := g.requests[pod]; known {
			total, requests, count = add(total, s.value), add(requests, request), count+1
		}
	}
	if requests == 0 {
		return load{}, errNoRequest
	}
	used := share(total, requests)
	return load{ratio: float64(used) / float64(g.target), utilization: used, average: total / count}, nil
}

// replicasOf says how many pods bring the load to its target. Pods whose use is unknown damp the answer
// and never turn its direction. The samples are changed.
func replicasOf(current int32, samples map[string]sample, pods groups, t tolerances, g gauge) (int32, load, error) {
	first, err := g.measure(samples)
	if err != nil {
		return 0, load{}, err
	}
	unready := len(pods.unready) > 0 && first.ratio > 1
	if !unready && len(pods.missing) == 0 {
		if t.within(first.ratio) {
			return current, first, nil
		}
		return ceil(first.ratio * float64(pods.ready)), first, nil
	}
	assume(samples, pods, first.ratio, g)
	second, err := g.measure(samples)
	if err != nil {
		return 0, first, err
	}
	if t.within(second.ratio) || turns(first.ratio, second.ratio) {
		return current, first, nil
	}
	next := ceil(second.ratio * float64(len(samples)))
	if second.ratio < 1 && next > current || second.ratio > 1 && next < current {
		return current, first, nil
	}
	return next, first, nil
}

func turns(first, second float64) bool { return first < 1 && second > 1 || first > 1 && second < 1 }

// assume fills in pods whose use is unknown: as idle if there should be more of them, as busy if fewer.
func assume(samples map[string]sample, pods groups, ratio float64, g gauge) {
	for _, pod := range pods.missing {
		switch {
		case ratio < 1:
			samples[pod] = sample{value: g.full(pod)}
		case ratio > 1:
			samples[pod] = sample{}
		}
	}
	if ratio > 1 {
		for _, pod := range pods.unready {
			samples[pod] = sample{}
		}
	}
}

// perTarget says how many pods a value needs that is not of single pods. Without a pod the ratio is their number.
func perTarget(current int32, ratio float64, ready int, t tolerances) int32 {
	switch {
	case current == 0:
		return ceil(ratio)
	case t.within(ratio):
		return current
	}
	return ceil(ratio * float64(ready))
}

// perPod says how many pods share a value so that each has the target, and what each has now. With no pod
// each has all.
func perPod(replicas int32, value, target int64, t tolerances) (next int32, average int64) {
	next = replicas
	if ratio := float64(value) / (float64(target) * float64(replicas)); !t.within(ratio) {
		next = ceil(float64(value) / float64(target))
	}
	if replicas == 0 || value == math.MaxInt64 {
		return next, value
	}
	return next, int64(math.Ceil(float64(value) / float64(replicas)))
}

// ceil rounds up and saturates, which a conversion does not.
func ceil(f float64) int32 {
	switch f = math.Ceil(f); {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt32:
		return math.MaxInt32
	case f <= math.MinInt32:
		return math.MinInt32
	}
	return int32(f)
}

// clip is n, or the bound of an int32 that it exceeds.
func clip(n int64) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, n))) }

// add saturates.
func add(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// share is part in percent of whole, toward zero, saturated. Whole is positive.
func share(part, whole int64) int32 {
	sign := int64(1)
	if part < 0 {
		part, sign = -max(part, -math.MaxInt64), -1
	}
	high, low := bits.Mul64(uint64(part), 100)
	if high >= uint64(whole) {
		return clip(sign * math.MaxInt64)
	}
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return clip(sign * int64(min(quotient, math.MaxInt64)))
}

// percent is a share of a whole that is not negative, saturated.
func percent(whole, share int64) int64 {
	high, low := bits.Mul64(uint64(whole), uint64(share))
	if high >= 100 {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, 100)
	return int64(min(quotient, math.MaxInt64))
}
