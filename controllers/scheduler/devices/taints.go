package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// taintedSlices are all slices, their devices with the taints that DeviceTaintRules give them.
func (w *World) taintedSlices() ([]*resourcev1.ResourceSlice, error) {
	slices, err := w.slices.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	rules, err := w.rules.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	tainted := make([]*resourcev1.ResourceSlice, len(slices))
	for i, slice := range slices {
		tainted[i] = taint(slice, rules)
	}
	return tainted, nil
}

// taint gives the slice as it is if no rule selects one of its devices, else a copy.
func taint(slice *resourcev1.ResourceSlice, rules []*resourcev1.DeviceTaintRule) *resourcev1.ResourceSlice {
	tainted := slice
	for _, rule := range rules {
		for i := range slice.Spec.Devices {
			if !selects(rule.Spec.DeviceSelector, &slice.Spec, slice.Spec.Devices[i].Name) {
				continue
			}
			if tainted == slice {
				tainted = slice.DeepCopy()
			}
			device := &tainted.Spec.Devices[i]
			device.Taints = append(device.Taints, rule.Spec.Taint)
		}
	}
	return tainted
}

// selects tells whether a rule is for a device. One without a selector is for none; an empty selector is for all.
func selects(s *resourcev1.DeviceTaintSelector, slice *resourcev1.ResourceSliceSpec, device string) bool {
	return s != nil && (s.Driver == nil || *s.Driver == slice.Driver) && (s.Pool == nil || *s.Pool == slice.Pool.Name) &&
		(s.Device == nil || *s.Device == device)
}
