package resourceapi

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// edit makes a status of the claim in the tests.
type edit func(*resourcev1.ResourceClaim)

func claimWith(edits ...edit) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: "shop"}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "a"}}}
	for _, e := range edits {
		e(c)
	}
	return c
}

func allocates(device string, zones ...string) edit {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "one", Driver: "a.example.com", Pool: "p", Device: device}},
		}}
		if len(zones) > 0 {
			c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: zones}},
			}}}
		}
	}
}

func reserves(uids ...types.UID) edit {
	return func(c *resourcev1.ResourceClaim) {
		for _, uid := range uids {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: uid})
		}
	}
}

func reports(devices ...string) edit {
	return func(c *resourcev1.ResourceClaim) {
		for _, device := range devices {
			c.Status.Devices = append(c.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: "a.example.com", Pool: "p", Device: device})
		}
	}
}

func dying(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func TestClaimStatusUpdates(t *testing.T) {
	many := make([]types.UID, resourcev1.ResourceClaimReservedForMaxSize+1)
	for i := range many {
		many[i] = types.UID(strings.Repeat("u", i+1))
	}
	const device = `status.devices[0]: Invalid value: {"Driver":"a.example.com","Pool":"p","Device":"d","ShareID":""}: must be an allocated device in the claim`
	for name, c := range map[string]struct {
		old, claim *resourcev1.ResourceClaim
		want       string // of the only error
	}{
		"allocated":           {claimWith(), claimWith(allocates("d", "a")), ""},
		"reserved":            {claimWith(allocates("d")), claimWith(allocates("d"), reserves("u")), ""},
		"as many as may":      {claimWith(allocates("d")), claimWith(allocates("d"), reserves(many[1:]...)), ""},
		"too many":            {claimWith(allocates("d")), claimWith(allocates("d"), reserves(many...)), "status.reservedFor: Too many: 257: must have at most 256 items"},
		"twice":               {claimWith(allocates("d")), claimWith(allocates("d"), reserves("u", "u")), "status.reservedFor[1]: Duplicate value"},
		"by nobody":           {claimWith(allocates("d")), claimWith(allocates("d"), reserves("")), "status.reservedFor[0].uid: Required value"},
		"not allocated":       {claimWith(), claimWith(reserves("u")), "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"},
		"released, not given": {claimWith(allocates("d"), reserves("u")), claimWith(reserves("u")), "status.reservedFor: Forbidden: may not be specified"},
		"given back":          {claimWith(allocates("d"), reserves("u")), claimWith(), ""},
		"dying, reserved":     {claimWith(allocates("d"), reserves("u"), dying), claimWith(allocates("d"), reserves("u"), dying), ""},
		"dying, one more":     {claimWith(allocates("d"), reserves("u"), dying), claimWith(allocates("d"), reserves("u", "v"), dying), "status.reservedFor: Forbidden: new entries may not be added"},
		"allocated anew":      {claimWith(allocates("d")), claimWith(allocates("e")), "status.allocation: Invalid value"},
		"no such zone":        {claimWith(), claimWith(allocates("d", "-b-")), `status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-b-"`},
		"kept zone":           {claimWith(allocates("d", "-b-")), claimWith(allocates("d", "-b-"), reserves("u")), ""},
		"reported":            {claimWith(allocates("d")), claimWith(allocates("d"), reports("d")), ""},
		"reported twice":      {claimWith(allocates("d")), claimWith(allocates("d"), reports("d", "d")), "status.devices[1]: Duplicate value"},
		"another's device":    {claimWith(allocates("e")), claimWith(allocates("e"), reports("d")), device},
		"nobody's device":     {claimWith(), claimWith(reports("d")), device},
	} {
		t.Run(name, func(t *testing.T) {
			errs := validateClaimStatus(c.claim, c.old)
			switch {
			case c.want == "" && len(errs) > 0:
				t.Error(errs)
			case c.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want)):
				t.Errorf("%v, want %s", errs, c.want)
			}
		})
	}
}

// TestReportsGoWithTheirAllocation: what was said of a share of a device, too.
func TestReportsGoWithTheirAllocation(t *testing.T) {
	shared := func(c *resourcev1.ResourceClaim) {
		c.Status.Devices[0].ShareID = ptr.To("s")
		if c.Status.Allocation != nil {
			c.Status.Allocation.Devices.Results[0].ShareID = ptr.To(types.UID("s"))
		}
	}
	for name, edits := range map[string][]edit{"whole": {reports("d")}, "shared": {reports("d"), shared}} {
		old, claim := claimWith(append([]edit{allocates("d")}, edits...)...), claimWith(edits...)
		prepareClaimStatus(claim, old)
		if len(claim.Status.Devices) > 0 {
			t.Errorf("%s: %v", name, claim.Status.Devices)
		}
	}
}
