package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultHard are upstream's hard thresholds.
func DefaultHard() map[string]string {
	return map[string]string{
		string(MemoryAvailable): "100Mi", string(NodeFsAvailable): "10%", string(NodeFsInodesFree): "5%",
		string(ImageFsAvailable): "15%", string(ImageFsInodesFree): "5%",
	}
}

// DefaultTransition is upstream's.
const DefaultTransition = 5 * time.Minute

// DefaultPolicy is upstream's.
func DefaultPolicy() Policy {
	hard, err := ParseThresholds(Statements{Hard: DefaultHard()})
	if err != nil {
		panic(err) // a constant
	}
	return Policy{Thresholds: hard, Transition: DefaultTransition}
}

// Statements are the maps of a KubeletConfiguration, from signals to quantities, percentages and durations.
type Statements struct {
	Hard, Soft, SoftGracePeriod, MinimumReclaim map[string]string
}

// FieldError names the map and the key that are wrong.
type FieldError struct {
	// Field is that of a KubeletConfiguration.
	Field, Key string
	Err        error
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s[%s]: %v", e.Field, e.Key, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

var (
	errSignal   = errors.New("unsupported eviction signal")
	errDerived  = errors.New("its values are those of nodefs or imagefs, whichever holds the containers")
	errPercent  = errors.New("must be a percentage from 0% to 100%")
	errPositive = errors.New("must be positive")
	errNegative = errors.New("must not be negative")
	errNoGrace  = errors.New("grace period must be specified for the soft eviction threshold")
)

// ParseThresholds reads what upstream reads. Its errors are FieldErrors.
func ParseThresholds(s Statements) ([]Threshold, error) {
	var out []Threshold
	grace, err := parse("evictionSoftGracePeriod", s.SoftGracePeriod, parseGrace)
	if err != nil {
		return nil, err
	}
	reclaim, err := parse("evictionMinimumReclaim", s.MinimumReclaim, parseReclaim)
	if err != nil {
		return nil, err
	}
	for _, list := range []struct {
		field  string
		values map[string]string
	}{{"evictionHard", s.Hard}, {"evictionSoft", s.Soft}} {
		soft := list.field == "evictionSoft"
		values, err := parse(list.field, list.values, parseAmount)
		if err != nil {
			return nil, err
		}
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			period, ok := grace[signal]
			if soft && !ok {
				return nil, &FieldError{list.field, string(signal), errNoGrace}
			}
			if !soft {
				period = 0
			}
			if value := values[signal]; value != nil {
				out = append(out, Threshold{Signal: signal, Value: *value, Grace: period, MinReclaim: reclaim[signal]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Threshold) int { return cmp.Compare(rankOf(a.Signal), rankOf(b.Signal)) })
	return out, nil
}

func parse[T any](field string, statements map[string]string, one func(string) (T, error)) (map[Signal]T, error) {
	out := map[Signal]T{}
	for _, key := range slices.Sorted(maps.Keys(statements)) {
		if err := checkSignal(key); err != nil {
			return nil, &FieldError{field, key, err}
		}
		value, err := one(statements[key])
		if err != nil {
			return nil, &FieldError{field, key, fmt.Errorf("%q: %w", statements[key], err)}
		}
		out[Signal(key)] = value
	}
	return out, nil
}

func checkSignal(key string) error {
	if strings.HasPrefix(key, "containerfs.") {
		return errDerived
	}
	if _, ok := kindOf(Signal(key)); !ok {
		return errSignal
	}
	return nil
}

// parseAmount is nil for 0% and 100%, which switch a threshold off.
func parseAmount(text string) (*Amount, error) {
	if text == "0%" || text == "100%" {
		return nil, nil
	}
	if strings.HasSuffix(text, "%") {
		fraction, err := parseFraction(text)
		return &Amount{Fraction: fraction}, err
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Sign() <= 0 {
		err = errPositive
	}
	return &Amount{Quantity: &q}, err
}

func parseReclaim(text string) (Amount, error) {
	if strings.HasSuffix(text, "%") {
		fraction, err := parseFraction(text)
		if err == nil && fraction == 0 {
			err = errPositive
		}
		return Amount{Fraction: fraction}, err
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Sign() < 0 {
		err = errNegative
	}
	return Amount{Quantity: &q}, err
}

func parseFraction(text string) (float32, error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 32)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return 0, errPercent
	}
	return float32(percent) / 100, nil
}

func parseGrace(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errNegative
	}
	return d, err
}

// WithAllocatable adds to the hard thresholds of memory the same ones of what pods can have of it, as upstream does where part
// of the memory is reserved.
func WithAllocatable(list []Threshold) []Threshold {
	var out []Threshold
	for _, t := range list {
		out = append(out, t)
		if t.Signal == MemoryAvailable && t.hard() {
			t.Signal = AllocatableMemoryAvailable
			out = append(out, t)
		}
	}
	return out
}
