package devicetainteviction

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// tolerationMax is the longest time for which a taint is tolerated if it is not tolerated forever.
const tolerationMax = 100 * 365 * 24 * time.Hour

// eviction is when a pod has to go, and which rules are among the reasons.
type eviction struct {
	when  time.Time
	rules map[types.UID]bool
}

// add takes another taint into account; e may be nil.
func (e *eviction) add(when time.Time, rule *resourcev1.DeviceTaintRule) *eviction {
	if e == nil {
		e = &eviction{when: when, rules: map[types.UID]bool{}}
	}
	if when.Before(e.when) {
		e.when = when
	}
	if rule != nil {
		e.rules[rule.UID] = true
	}
	return e
}

// view is what taints devices. It is read only.
type view struct {
	// rules are those that evict.
	rules []*resourcev1.DeviceTaintRule
	// pool gives all slices of a pool of a driver.
	pool func(driver, pool string) []*resourcev1.ResourceSlice
}

// evictionOf says when a pod has to go; nil if it may stay. claim gives the claim of a name, nil if there is none.
func (v view) evictionOf(pod *corev1.Pod, claim func(name string) *resourcev1.ResourceClaim) *eviction {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || podstate.Finished(pod) {
		return nil
	}
	var e *eviction
	for name, checkOwner := range resourceclaim.PodClaims(pod) {
		c := claim(name)
		if c == nil || c.Status.Allocation == nil || checkOwner && !metav1.IsControlledBy(c, pod) ||
			!resourceclaim.IsReservedForPod(pod, c, false) {
			continue
		}
		for j := range c.Status.Allocation.Devices.Results {
			e = v.addDevice(e, &c.Status.Allocation.Devices.Results[j])
		}
	}
	return e
}

// addDevice adds the taints of one allocated device.
func (v view) addDevice(e *eviction, result *resourcev1.DeviceRequestAllocationResult) *eviction {
	for _, device := range activeDevices(v.pool(result.Driver, result.Pool)) {
		if device.Name != result.Device {
			continue
		}
		for i := range device.Taints {
			if when, evicts := endOf(result, &device.Taints[i]); evicts {
				e = e.add(when, nil)
			}
		}
		break
	}
	for _, rule := range v.rules {
		if !selects(rule, result.Driver, result.Pool, result.Device) {
			continue
		}
		if when, evicts := endOf(result, taintOf(rule)); evicts {
			e = e.add(when, rule)
		}
	}
	return e
}

// activeDevices are those of the newest generation of a pool.
func activeDevices(pool []*resourcev1.ResourceSlice) []*resourcev1.Device {
	newest := int64(math.MinInt64)
	for _, slice := range pool {
		newest = max(newest, slice.Spec.Pool.Generation)
	}
	var devices []*resourcev1.Device
	for _, slice := range pool {
		if slice.Spec.Pool.Generation != newest {
			continue
		}
		for i := range slice.Spec.Devices {
			devices = append(devices, &slice.Spec.Devices[i])
		}
	}
	return devices
}

// endOf says when the use of a device ends because of a taint. Of several tolerations the shortest counts; one without seconds
// is forever.
func endOf(result *resourcev1.DeviceRequestAllocationResult, taint *resourcev1.DeviceTaint) (when time.Time, evicts bool) {
	if taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return time.Time{}, false
	}
	if taint.TimeAdded != nil {
		when = taint.TimeAdded.Time
	}
	tolerated, any := tolerationMax, false
	for _, t := range result.Tolerations {
		if t.Effect != resourcev1.DeviceTaintEffectNoExecute || !resourceclaim.ToleratesTaint(t, *taint) {
			continue
		}
		if t.TolerationSeconds == nil {
			return time.Time{}, false
		}
		any, tolerated = true, min(tolerated, seconds(*t.TolerationSeconds))
	}
	if any {
		when = when.Add(tolerated)
	}
	return when, true
}

// seconds is n seconds, within 0 and tolerationMax.
func seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), int64(tolerationMax/time.Second))) * time.Second
}

// selects is true of a rule that taints a device. One without a selector taints none; an empty one taints all.
func selects(rule *resourcev1.DeviceTaintRule, driver, pool, device string) bool {
	s := rule.Spec.DeviceSelector
	return s != nil && (s.Driver == nil || *s.Driver == driver) && (s.Pool == nil || *s.Pool == pool) &&
		(s.Device == nil || *s.Device == device)
}

// taintOf is the taint that a rule gives to devices.
func taintOf(rule *resourcev1.DeviceTaintRule) *resourcev1.DeviceTaint {
	t := rule.Spec.Taint
	return &resourcev1.DeviceTaint{Key: t.Key, Value: t.Value, Effect: t.Effect, TimeAdded: t.TimeAdded}
}

// evicts is true of a rule whose effect is NoExecute.
func evicts(rule *resourcev1.DeviceTaintRule) bool {
	return rule.Spec.Taint.Effect == resourcev1.DeviceTaintEffectNoExecute
}
