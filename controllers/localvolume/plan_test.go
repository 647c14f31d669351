package localvolume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/internal/localvolume"
)

func aClass(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := class(nil)
	for _, f := range change {
		f(c)
	}
	return c
}

// aClaim wants 1Gi of the class and was given the node n.
func aClaim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1-c", Annotations: map[string]string{
			volume.AnnSelectedNode: "n", volume.AnnStorageProvisioner: localvolume.Driver}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(localvolume.Class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode: new(corev1.PersistentVolumeFilesystem),
			Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func aNode(name, disk string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-n", Labels: map[string]string{corev1.LabelHostname: "host-" + corev1.LabelHostname[:1] + name}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(disk)}},
	}
}

func TestPlanClaim(t *testing.T) {
	bound := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = "pvc-1-c", corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	more := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	}
	its := volumeFor(claimView{claim: aClaim(), class: aClass(), node: aNode("n", "9Gi")})
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		class *storagev1.StorageClass
		node  *corev1.Node
		want  string
	}{
		"to be made":     {aClaim(), aClass(), aNode("n", "1"), "make pvc-1-c"},
		"no class":       {aClaim(), nil, aNode("n", "1"), ""},
		"another's":      {aClaim(), aClass(func(c *storagev1.StorageClass) { c.Provisioner = "other" }), aNode("n", "1"), ""},
		"not asked yet":  {aClaim(func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }), aClass(), nil, ""},
		"no pod yet":     {aClaim(func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, volume.AnnSelectedNode) }), aClass(), nil, ""},
		"a foreign node": {aClaim(), aClass(), nil, "elsewhere: node n has no local volumes"},
		"being deleted":  {aClaim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }), aClass(), aNode("n", "1"), ""},
		"at once":        {aClaim(), aClass(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }), nil, "refuse: class setpoint-local needs volumeBindingMode WaitForFirstConsumer"},
		"shared": {aClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), aClass(), aNode("n", "1"), "refuse: a volume on the disk of one node can only be"},
		"a copy":       {aClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{} }), aClass(), aNode("n", "1"), "refuse: a local volume begins empty"},
		"a selector":   {aClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }), aClass(), aNode("n", "1"), "refuse: claim.spec.selector"},
		"parameters":   {aClaim(), aClass(func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"path": "/etc"} }), aNode("n", "1"), "refuse: class setpoint-local has parameters, which local volumes do not know: [path]"},
		"mountOptions": {aClaim(), aClass(func(c *storagev1.StorageClass) { c.MountOptions = []string{"suid"} }), aNode("n", "1"), "refuse: class setpoint-local has mountOptions"},
		"out of range": {aClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Ei")
		}), aClass(), aNode("n", "1"), "refuse: the requested size"},
		"bound":                           {aClaim(bound), aClass(), nil, ""},
		"growing":                         {aClaim(bound, more), aClass(), nil, "grow"},
		"growing, not bound yet":          {aClaim(bound, more, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }), aClass(), nil, ""},
		"growing, another claim's volume": {aClaim(bound, more, func(c *corev1.PersistentVolumeClaim) { c.UID = "2" }), aClass(), nil, ""},
	} {
		view := claimView{claim: c.claim, class: c.class, node: c.node}
		if c.claim.Spec.VolumeName != "" {
			view.volume = its
		}
		if got := textOf(planClaim(view)); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func textOf(p claimPlan) string {
	switch {
	case p.provision != nil:
		return "make " + p.provision.Name
	case p.grow:
		return "grow"
	case p.elsewhere != "":
		return "elsewhere: " + p.elsewhere
	case p.refuse != "":
		return "refuse: " + p.refuse
	}
	return ""
}

func TestPlanEnd(t *testing.T) {
	const retain, remove = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	for name, c := range map[string]struct {
		policy  corev1.PersistentVolumeReclaimPolicy
		phase   corev1.PersistentVolumePhase
		goes    bool
		claimed bool
		want    end
	}{
		"new":                            {remove, corev1.VolumePending, false, true, stays},
		"bound":                          {remove, corev1.VolumeBound, false, true, stays},
		"bound, deleted":                 {remove, corev1.VolumeBound, true, true, stays},
		"released, the cache is behind":  {remove, corev1.VolumeReleased, true, true, stays},
		"released":                       {remove, corev1.VolumeReleased, false, false, deleted},
		"released, deleted by hand":      {remove, corev1.VolumeReleased, true, false, deleted},
		"released, retained":             {retain, corev1.VolumeReleased, false, false, stays},
		"retained, deleted by hand":      {retain, corev1.VolumeReleased, true, false, forgotten},
		"given free by an administrator": {remove, corev1.VolumeAvailable, false, false, stays},
		"free, deleted by hand":          {remove, corev1.VolumeAvailable, true, false, deleted},
	} {
		v := volumeFor(claimView{claim: aClaim(), class: aClass(), node: aNode("n", "9Gi")})
		v.Spec.PersistentVolumeReclaimPolicy, v.Status.Phase = c.policy, c.phase
		if c.goes {
			v.DeletionTimestamp = &metav1.Time{}
		}
		if got := planEnd(v, c.claimed); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestLedger(t *testing.T) {
	sized := func(name, node, size string) *corev1.PersistentVolume {
		v := volumeFor(claimView{claim: aClaim(), class: aClass(), node: aNode(node, "1")})
		v.Name, v.Spec.Capacity = name, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return v
	}
	cache := []*corev1.PersistentVolume{sized("a", "n", "30"), sized("elsewhere", "m", "90"), {}}
	var l ledger
	list := func() ([]*corev1.PersistentVolume, error) {
		if l.mu.TryLock() {
			t.Error("the cache is listed while another worker may drop what its list shows")
			l.mu.Unlock()
		}
		return cache, nil
	}
	take := func(name string, bytes, wantLeft int64, want bool) {
		t.Helper()
		if left, ok, err := l.take(name, "n", bytes, 100, list); left != wantLeft || ok != want || err != nil {
			t.Errorf("%s: %d %v %v, want %d %v", name, left, ok, err, wantLeft, want)
		}
	}
	take("b", 60, 70, true)
	take("b", 60, 70, true) // again, after an error
	take("c", 20, 10, false)
	take("a", 40, 40, true) // grows
	take("c", 1, 0, false)
	cache = append(cache, sized("b", "n", "60"))
	take("c", 1, 0, false)
	l.giveBack("a")
	take("c", 10, 10, true)
	if free, err := l.free("n", 100, list); free != 0 || len(l.own) != 1 || err != nil {
		t.Errorf("%d free, %v, %v", free, l.own, err)
	}
	if free, err := l.free("n", 10, list); free != 0 || err != nil {
		t.Errorf("a smaller disk: %d, %v", free, err)
	}
}
