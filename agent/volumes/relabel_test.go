package volumes

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// drives mounts every volume; the one that is called labelled has its label already.
type drives struct{ Drivers }

func (drives) Mount(_ context.Context, v csi.Volume) (csi.Mounted, error) {
	return csi.Mounted{Path: "/mounted", Relabel: v.PV == nil || v.PV.Spec.CSI.VolumeHandle != "labelled"}, nil
}

// TestWhatIsRelabelled, as with a kubelet: volumes that are managed for pods, unless pods only read them.
func TestWhatIsRelabelled(t *testing.T) {
	claim := func(name string, readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: readOnly}}
	}
	s := &shelf{maps: map[string]map[string]string{"m": {}}, volumes: map[string]corev1.PersistentVolumeSource{
		"host":     {HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}},
		"driver":   {CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}},
		"labelled": {CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "labelled"}},
	}}
	m := newManager(t, s)
	m.Drivers = drives{}
	readOnly := true
	for name, test := range map[string]struct {
		source corev1.VolumeSource
		want   bool
	}{
		"scratch":                     {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, true},
		"content":                     {configMap("m"), true},
		"the host's":                  {corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}, false},
		"local":                       {claim("local", false), true},
		"local, to read":              {claim("local", true), false},
		"the host's, by a claim":      {claim("host", false), false},
		"a driver's":                  {claim("driver", false), true},
		"a driver's, to read":         {claim("driver", true), false},
		"a driver's, with its label":  {claim("labelled", false), false},
		"a driver's, inline":          {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}, true},
		"a driver's, inline, to read": {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", ReadOnly: &readOnly}}, false},
	} {
		p := podWith(test.source)
		mounts, err := m.Mounts(MountInput{Pod: p, Container: &p.Spec.Containers[0], Places: mount(t, m, p)})
		if err != nil || len(mounts) != 1 || mounts[0].SelinuxRelabel != test.want {
			t.Errorf("%s: %v %v", name, mounts, err)
		}
	}
}
