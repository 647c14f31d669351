package volumebinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A change makes a test object special.
type (
	claimChange  func(*corev1.PersistentVolumeClaim)
	volumeChange func(*corev1.PersistentVolume)
)

// newClaim wants 5Gi, ReadWriteOnce, of the class "" that is nobody's.
func newClaim(name string, changes ...claimChange) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: size("5Gi")},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// newVolume has the size, is ReadWriteOnce, available, and of the class "".
func newVolume(name, capacity string, changes ...volumeChange) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: size(capacity),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	for _, change := range changes {
		change(v)
	}
	return v
}

func size(s string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}
}

func ofClass(name string) claimChange {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func inClass(name string) volumeChange {
	return func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = name }
}

func withModes(modes ...corev1.PersistentVolumeAccessMode) volumeChange {
	return func(v *corev1.PersistentVolume) { v.Spec.AccessModes = modes }
}

// referring is reserved for a claim; an empty uid is what a user would write.
func referring(claim, uid string) volumeChange {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "ns", Name: claim, UID: types.UID(uid)}
	}
}

func inStatus(phase corev1.PersistentVolumePhase) volumeChange {
	return func(v *corev1.PersistentVolume) { v.Status.Phase = phase }
}

func annotated(name, value string) volumeChange {
	return func(v *corev1.PersistentVolume) { metav1.SetMetaDataAnnotation(&v.ObjectMeta, name, value) }
}

func goingVolume(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} }

func blockVolume(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }

func fastVolume(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("fast") }

func labelled(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "ssd"} }

func selecting(c *corev1.PersistentVolumeClaim) {
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "ssd"}}
}

func fastClaim(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") }

func TestBestMatch(t *testing.T) {
	many := withModes(corev1.ReadWriteMany, corev1.ReadWriteOnce)
	for name, c := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		volumes []*corev1.PersistentVolume
		waits   bool
		want    string
	}{
		"none":                     {newClaim("c"), nil, false, ""},
		"the smallest that fits":   {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "10Gi"), newVolume("b", "6Gi"), newVolume("c", "4Gi")}, false, "b"},
		"equal sizes":              {newClaim("c"), []*corev1.PersistentVolume{newVolume("b", "6Gi"), newVolume("a", "6Gi")}, false, "a"},
		"fewer modes before size":  {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", many), newVolume("b", "9Gi")}, false, "b"},
		"more modes than asked":    {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "9Gi", many), newVolume("b", "7Gi", many)}, false, "b"},
		"other modes":              {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", withModes(corev1.ReadOnlyMany))}, false, ""},
		"too small":                {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "4Gi")}, false, ""},
		"not available yet":        {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", inStatus(corev1.VolumePending))}, false, ""},
		"released":                 {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", inStatus(corev1.VolumeReleased), referring("c", "uid-old"))}, false, ""},
		"going":                    {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", goingVolume)}, false, ""},
		"block":                    {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", blockVolume)}, false, ""},
		"attributes of the volume": {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", fastVolume)}, false, ""},
		"attributes of the claim":  {newClaim("c", fastClaim), []*corev1.PersistentVolume{newVolume("a", "5Gi"), newVolume("b", "9Gi", fastVolume)}, false, "b"},
		"selector":                 {newClaim("c", selecting), []*corev1.PersistentVolume{newVolume("a", "5Gi"), newVolume("b", "9Gi", labelled)}, false, "b"},
		"another class":            {newClaim("c", ofClass("x")), []*corev1.PersistentVolume{newVolume("a", "5Gi"), newVolume("b", "9Gi", inClass("x"))}, false, "b"},
		"another's":                {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", referring("d", ""))}, false, ""},
		"reserved by its creator":  {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi"), newVolume("b", "9Gi", inClass("x"), referring("c", ""))}, false, "b"},
		"interrupted":              {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi"), newVolume("b", "9Gi", many, referring("c", "uid-c"))}, false, "b"},
		"reserved but too small":   {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "6Gi"), newVolume("b", "4Gi", referring("c", ""))}, false, "a"},
		"waits":                    {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi")}, true, ""},
		"waits, reserved for it":   {newClaim("c"), []*corev1.PersistentVolume{newVolume("a", "5Gi", referring("c", "uid-c"))}, true, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := bestMatch(c.claim, c.volumes, c.waits)
			got := ""
			if found != nil {
				got = found.Name
			}
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestWhatANamedVolumeMustSatisfy(t *testing.T) {
	for want, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
	}{
		"":                                      {newClaim("c"), newVolume("v", "5Gi")},
		`the volume is marked for deletion "v"`: {newClaim("c"), newVolume("v", "5Gi", goingVolume)},
		"requested PV is too small":             {newClaim("c"), newVolume("v", "1Gi")},
		"storageClassName does not match":       {newClaim("c", ofClass("x")), newVolume("v", "5Gi")},
		"volumeAttributesClassName does not match": {newClaim("c", fastClaim), newVolume("v", "5Gi")},
		"incompatible volumeMode":                  {newClaim("c"), newVolume("v", "5Gi", blockVolume)},
		"incompatible accessMode":                  {newClaim("c"), newVolume("v", "5Gi", withModes(corev1.ReadOnlyMany))},
	} {
		got := ""
		if err := satisfies(c.volume, c.claim); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
