package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyPause is how often claims are looked at whose devices are not ready. Upstream's.
const readyPause = 5 * time.Second

// Upstream's errors.
var (
	errBindingTimeout = errors.New("device binding timeout")
	errBindingFailed  = errors.New("device binding failed")
)

// Pending tells whether a pod has to wait for devices of the claims: they have binding conditions.
func Pending(claims []*resourcev1.ResourceClaim) bool {
	for _, claim := range claims {
		for _, result := range results(claim) {
			if len(result.BindingConditions) > 0 {
				return true
			}
		}
	}
	return false
}

// Await waits until the devices of the claims are ready, their driver tells that they will not be, or they took too long.
func (w *Writer) Await(ctx context.Context, claims []*resourcev1.ResourceClaim, limits Limits) error {
	ctx, cancel := context.WithTimeout(ctx, limits.Binding)
	defer cancel()
	for {
		ready, err := allReady(claims, limits, w.Clock.Now())
		if ready || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errBindingTimeout, ctx.Err())
		case <-time.After(readyPause):
		}
		for i, claim := range claims {
			found, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
			if err == nil {
				claims[i] = found
			} else if refused(err) {
				return err
			}
		}
	}
}

func allReady(claims []*resourcev1.ResourceClaim, limits Limits, now time.Time) (bool, error) {
	for _, claim := range claims {
		ready, err := isReady(claim)
		switch {
		case err != nil:
			return false, err
		case !ready && isLate(claim, limits, now):
			return false, fmt.Errorf("%w: claim=%s", errBindingTimeout, claim.Name)
		case !ready:
			return false, nil
		}
	}
	return true, nil
}

// IsStuck tells that devices of the claim will not become ready, or have taken too long.
func IsStuck(claim *resourcev1.ResourceClaim, limits Limits, now time.Time) bool {
	if claim.Status.Allocation == nil {
		return false
	}
	ready, err := isReady(claim)
	return err != nil || !ready && isLate(claim, limits, now)
}

// isReady tells whether all binding conditions are true. The error says which device failed.
func isReady(claim *resourcev1.ResourceClaim) (bool, error) {
	if claim.Status.Allocation == nil {
		return false, nil
	}
	for _, result := range results(claim) {
		if len(result.BindingConditions) == 0 {
			continue
		}
		device := deviceOf(claim, &result)
		if device == nil {
			return false, nil
		}
		for _, name := range result.BindingFailureConditions {
			if c := apimeta.FindStatusCondition(device.Conditions, name); c != nil && c.Status == metav1.ConditionTrue {
				return false, fmt.Errorf("%w: claim=%s, reason=%s, message=%q", errBindingFailed, claim.Name, c.Reason, c.Message)
			}
		}
		for _, name := range result.BindingConditions {
			if !apimeta.IsStatusConditionTrue(device.Conditions, name) {
				return false, nil
			}
		}
	}
	return true, nil
}

// isLate tells that a claim has had its devices for too long without their being ready.
func isLate(claim *resourcev1.ResourceClaim, limits Limits, now time.Time) bool {
	if !Pending([]*resourcev1.ResourceClaim{claim}) {
		return false
	}
	since := claim.Status.Allocation.AllocationTimestamp
	return since != nil && since.Add(limits.Binding).Before(now)
}

func results(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// deviceOf is what the driver says of a device of the claim; nil if nothing.
func deviceOf(claim *resourcev1.ResourceClaim, r *resourcev1.DeviceRequestAllocationResult) *resourcev1.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		if d := &claim.Status.Devices[i]; d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device {
			return d
		}
	}
	return nil
}
