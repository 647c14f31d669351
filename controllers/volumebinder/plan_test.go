package volumebinder

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

func ofVolume(v string) claimChange {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = v }
}

func noting(name, value string) claimChange {
	return func(c *corev1.PersistentVolumeClaim) { annotate(c, name, value) }
}

func withoutClass(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }

func newClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

// said is what a claim's plan comes to, in words.
func said(p claimPlan) (did, why string) {
	switch {
	case p.bind != nil:
		did = "bind " + p.bind.Name
	case p.rewrite != nil:
		did = "rewrite class=" + valueOf(p.rewrite.Spec.StorageClassName) + " by=" + p.rewrite.Annotations[volume.AnnStorageProvisioner] +
			p.rewrite.Annotations[volume.AnnBetaStorageProvisioner]
	case p.phase != "":
		did = string(p.phase)
	}
	return did, p.says.reason
}

func TestPlanClaim(t *testing.T) {
	done, now, late := noting(volume.AnnBindCompleted, "yes"), storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	csi := newClass("x", "csi.example.com", now)
	for name, c := range map[string]struct {
		view     claimView
		did, why string
	}{
		"match":                {claimView{claim: newClaim("c"), candidates: []*corev1.PersistentVolume{newVolume("v", "5Gi")}}, "bind v", ""},
		"nothing there":        {claimView{claim: newClaim("c")}, "Pending", "FailedBinding"},
		"default class":        {claimView{claim: newClaim("c", withoutClass), fallback: csi}, "rewrite class=x by=", ""},
		"no class on purpose":  {claimView{claim: newClaim("c"), fallback: csi}, "Pending", "FailedBinding"},
		"no default class":     {claimView{claim: newClaim("c", withoutClass)}, "Pending", "FailedBinding"},
		"match before default": {claimView{claim: newClaim("c", withoutClass), fallback: csi, candidates: []*corev1.PersistentVolume{newVolume("v", "5Gi")}}, "bind v", ""},
		"class is missing":     {claimView{claim: newClaim("c", ofClass("x"))}, "", "ProvisioningFailed"},
		"built in":             {claimView{claim: newClaim("c", ofClass("x")), class: newClass("x", "kubernetes.io/aws-ebs", now)}, "", "ProvisioningFailed"},
		"without provisioner":  {claimView{claim: newClaim("c", ofClass("x")), class: newClass("x", volume.NotSupportedProvisioner, now)}, "", "ProvisioningFailed"},
		"provisioner":          {claimView{claim: newClaim("c", ofClass("x")), class: csi}, "rewrite class=x by=csi.example.comcsi.example.com", "ExternalProvisioning"},
		"provisioner is told":  {claimView{claim: newClaim("c", ofClass("x"), noting(volume.AnnStorageProvisioner, "csi.example.com")), class: csi}, "", "ExternalProvisioning"},
		"waits":                {claimView{claim: newClaim("c", ofClass("x")), class: newClass("x", "csi.example.com", late)}, "Pending", "WaitForFirstConsumer"},
		"waits with pods":      {claimView{claim: newClaim("c", ofClass("x")), class: newClass("x", "csi.example.com", late), pods: []string{"p"}}, "Pending", "WaitForPodScheduled"},
		"node selected":        {claimView{claim: newClaim("c", ofClass("x"), noting(volume.AnnSelectedNode, "n")), class: newClass("x", "csi.example.com", late)}, "rewrite class=x by=csi.example.comcsi.example.com", "ExternalProvisioning"},
		"waits, free volume":   {claimView{claim: newClaim("c", ofClass("x")), class: newClass("x", "csi.example.com", late), candidates: []*corev1.PersistentVolume{newVolume("v", "5Gi", inClass("x"))}}, "Pending", "WaitForFirstConsumer"},

		"named, missing":         {claimView{claim: newClaim("c", ofVolume("v"))}, "Pending", ""},
		"named, free":            {claimView{claim: newClaim("c", ofVolume("v")), named: newVolume("v", "5Gi")}, "bind v", ""},
		"named, not right":       {claimView{claim: newClaim("c", ofVolume("v")), named: newVolume("v", "1Gi")}, "Pending", "VolumeMismatch"},
		"named, reserved for it": {claimView{claim: newClaim("c", ofVolume("v")), named: newVolume("v", "1Gi", referring("c", ""))}, "bind v", ""},
		"named, another's":       {claimView{claim: newClaim("c", ofVolume("v")), named: newVolume("v", "5Gi", referring("d", "uid-d"))}, "Pending", "FailedBinding"},

		"bound":                      {claimView{claim: newClaim("c", done, ofVolume("v")), named: newVolume("v", "5Gi", referring("c", "uid-c"))}, "bind v", ""},
		"bound, reference lost":      {claimView{claim: newClaim("c", done, ofVolume("v")), named: newVolume("v", "5Gi")}, "bind v", ""},
		"bound, volume gone":         {claimView{claim: newClaim("c", done, ofVolume("v"))}, "Lost", "ClaimLost"},
		"bound, name gone":           {claimView{claim: newClaim("c", done)}, "Lost", "ClaimLost"},
		"bound, volume is another's": {claimView{claim: newClaim("c", done, ofVolume("v")), named: newVolume("v", "5Gi", referring("c", "uid-old"))}, "Lost", "ClaimMisbound"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := planClaim(c.view)
			did, why := said(plan)
			if err != nil || did != c.did || why != c.why {
				t.Errorf("%q, %q, %v; want %q, %q", did, why, err, c.did, c.why)
			}
		})
	}
}

func TestPlanVolume(t *testing.T) {
	made := annotated(volume.AnnDynamicallyProvisioned, "csi.example.com")
	with := func(p corev1.PersistentVolumeReclaimPolicy) volumeChange {
		return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = p }
	}
	mine, released, deleting := referring("c", "uid-c"), inStatus(corev1.VolumeReleased), with(corev1.PersistentVolumeReclaimDelete)
	csi := func(v *corev1.PersistentVolume) {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}
	}
	elsewhere := newClaim("c", ofVolume("w"))
	for name, c := range map[string]struct {
		volume   *corev1.PersistentVolume
		claim    *corev1.PersistentVolumeClaim
		did, why string
	}{
		"free":                              {newVolume("v", "5Gi"), nil, "Available", ""},
		"reserved by its creator":           {newVolume("v", "5Gi", referring("c", "")), nil, "Available", ""},
		"reserved":                          {newVolume("v", "5Gi", mine), newClaim("c"), "", ""},
		"reserved, not right":               {newVolume("v", "5Gi", mine, blockVolume), newClaim("c"), "", "VolumeMismatch"},
		"bound":                             {newVolume("v", "5Gi", mine), newClaim("c", ofVolume("v")), "Bound", ""},
		"claim gone":                        {newVolume("v", "5Gi", mine), nil, "Released", ""},
		"retained":                          {newVolume("v", "5Gi", mine, released), nil, "", ""},
		"recycled":                          {newVolume("v", "5Gi", mine, released, with(corev1.PersistentVolumeReclaimRecycle)), nil, "Failed", "VolumeFailedRecycle"},
		"unknown policy":                    {newVolume("v", "5Gi", mine, released, with("Burn")), nil, "Failed", "VolumeUnknownReclaimPolicy"},
		"deleted by nobody":                 {newVolume("v", "5Gi", mine, released, deleting), nil, "Failed", "VolumeFailedDelete"},
		"of a built-in provisioner":         {newVolume("v", "5Gi", mine, released, deleting, annotated(volume.AnnDynamicallyProvisioned, "kubernetes.io/x")), nil, "Failed", "VolumeFailedDelete"},
		"deleted by provisioner":            {newVolume("v", "5Gi", mine, released, deleting, made), nil, "", ""},
		"deleted by driver":                 {newVolume("v", "5Gi", mine, released, deleting, csi), nil, "", ""},
		"migrated":                          {newVolume("v", "5Gi", mine, released, deleting, annotated(volume.AnnMigratedTo, "x")), nil, "", ""},
		"claim has another":                 {newVolume("v", "5Gi", mine, annotated(volume.AnnBoundByController, "yes")), elsewhere, "free", ""},
		"claim has another, by its creator": {newVolume("v", "5Gi", mine), elsewhere, "free, reserved", ""},
		"claim has another, made for it":    {newVolume("v", "5Gi", mine, deleting, made), elsewhere, "Released", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planVolume(volumeView{c.volume, c.claim})
			did := string(plan.phase)
			if plan.rewrite != nil {
				did = "free"
				if ref := plan.rewrite.Spec.ClaimRef; ref != nil {
					did = "free, reserved" + string(ref.UID)
				} else if plan.rewrite.Annotations != nil {
					t.Errorf("annotations %v are left", plan.rewrite.Annotations)
				}
			}
			if did != c.did || plan.says.reason != c.why {
				t.Errorf("%q, %q; want %q, %q", did, plan.says.reason, c.did, c.why)
			}
		})
	}
}

func TestStatusOfABoundClaim(t *testing.T) {
	v := newVolume("v", "9Gi", fastVolume)
	bound := having(newClaim("c"), v)
	want := corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: v.Spec.AccessModes, Capacity: size("9Gi"), CurrentVolumeAttributesClassName: new("fast"),
	}
	if diff := cmp.Diff(want, bound.Status); diff != "" {
		t.Error(diff)
	}
	v.Spec.Capacity, v.Spec.VolumeAttributesClassName = size("20Gi"), new("slow")
	if again := having(bound, v); again != nil {
		t.Errorf("a resizer's fields were written: %v", again.Status)
	}
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, resizedFrom, "9Gi")
	if got := having(newClaim("c"), v).Status.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse("9Gi")) != 0 {
		t.Errorf("%s, want the size of the file system", got.String())
	}
	v.Annotations[resizedFrom] = "?"
	if got := having(newClaim("c"), v).Status.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse("20Gi")) != 0 {
		t.Errorf("%s, want the size of the volume", got.String())
	}
	if lost := without(bound, corev1.ClaimLost).Status; lost.Phase != corev1.ClaimLost || lost.Capacity != nil || lost.AccessModes != nil || lost.CurrentVolumeAttributesClassName != nil {
		t.Errorf("%v", lost)
	}
}

func TestTheDefaultClass(t *testing.T) {
	class := func(name, annotation string, age time.Duration) *storagev1.StorageClass {
		c := newClass(name, "p", storagev1.VolumeBindingImmediate)
		c.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(-age))
		if annotation != "" {
			c.Annotations = map[string]string{annotation: "true"}
		}
		return c
	}
	all := []*storagev1.StorageClass{
		class("no", "", 0), class("old", defaultAnnotations[0], time.Hour), class("b", defaultAnnotations[1], time.Minute), class("a", defaultAnnotations[0], time.Minute),
	}
	if got := defaultOf(all).Name; got != "a" {
		t.Errorf("%s, want a", got)
	}
	if got := defaultOf(all[:1]); got != nil {
		t.Errorf("%s, want none", got.Name)
	}
}
