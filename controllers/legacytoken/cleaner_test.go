package legacytoken

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var now = time.Date(2030, 6, 15, 12, 0, 0, 0, time.UTC)

// yearAgo is the day of now, a period before.
const yearAgo, before, after = "2029-06-15", "2029-06-14", "2029-06-16"

// token is a Secret that was made long ago, with labels in pairs.
func token(labels ...string) *corev1.Secret {
	s := secret("u1")
	s.CreationTimestamp = metav1.NewTime(now.Add(-3 * unusedPeriod))
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&s.ObjectMeta, labels[i], labels[i+1])
	}
	return s
}

// owner lists Secrets, as older clusters did.
func owner(uid string, secrets ...string) *corev1.ServiceAccount {
	a := account(uid)
	for _, name := range secrets {
		a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: name})
	}
	return a
}

func TestJudge(t *testing.T) {
	edit := func(s *corev1.Secret, change func(s *corev1.Secret)) *corev1.Secret {
		change(s)
		return s
	}
	its := owner("u1", "other", "s")
	for name, c := range map[string]struct {
		secret  *corev1.Secret
		account *corev1.ServiceAccount
		mounted string
		want    verdict
	}{
		"never used":                      {token(), its, "", invalidated},
		"used a year ago":                 {token(lastUsedLabel, yearAgo), its, "", stays},
		"used before":                     {token(lastUsedLabel, before), its, "", invalidated},
		"used since":                      {token(lastUsedLabel, after), its, "", stays},
		"used, nobody can read when":      {token(lastUsedLabel, "yesterday"), its, "", stays},
		"used, an empty date":             {token(lastUsedLabel, ""), its, "", stays},
		"made a year ago":                 {edit(token(), func(s *corev1.Secret) { s.CreationTimestamp = metav1.NewTime(now.Add(-unusedPeriod)) }), its, "", stays},
		"made a second before":            {edit(token(), func(s *corev1.Secret) { s.CreationTimestamp = metav1.NewTime(now.Add(-unusedPeriod - time.Second)) }), its, "", invalidated},
		"being deleted":                   {edit(token(), func(s *corev1.Secret) { s.DeletionTimestamp = new(metav1.Now()) }), its, "", stays},
		"of another type":                 {edit(token(), func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), its, "", stays},
		"without an account":              {token(), nil, "", stays},
		"of an account that was made new": {token(), owner("u2", "s"), "", stays},
		"before its uid was filled in":    {edit(token(), func(s *corev1.Secret) { delete(s.Annotations, corev1.ServiceAccountUIDKey) }), its, "", invalidated},
		"made by somebody":                {token(), owner("u1", "other"), "", stays},
		"a pod mounts it":                 {token(), its, "s", stays},
		"a pod mounts another":            {token(), its, "other", invalidated},
		"refused for a year":              {token(invalidSinceLabel, yearAgo), its, "", stays},
		"refused for more":                {token(invalidSinceLabel, before), its, "", deleted},
		"refused for less":                {token(invalidSinceLabel, after), its, "", stays},
		"refused, nobody knows when":      {token(invalidSinceLabel, "true"), its, "", invalidated},
		"refused for more, but used":      {token(invalidSinceLabel, before, lastUsedLabel, after), its, "", stays},
		"refused for more, but mounted":   {token(invalidSinceLabel, before), its, "s", stays},
		"refused and used before":         {token(invalidSinceLabel, before, lastUsedLabel, before), its, "", deleted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(c.secret, c.account, func() map[string]bool { return map[string]bool{c.mounted: true} }, now); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestTrackedLongEnough(t *testing.T) {
	for since, want := range map[string]bool{"2029-06-13": true, "2029-06-14": true, "2029-06-15": false, "2030-06-15": false, "2031-01-01": false} {
		if got, err := trackedLongEnough(since, now); err != nil || got != want {
			t.Errorf("%s: %v, %v", since, got, err)
		}
	}
	for _, since := range []string{"", "15.6.2029", "2029-06-14T00:00:00Z"} {
		if got, err := trackedLongEnough(since, now); err == nil || got {
			t.Errorf("%q: %v", since, got)
		}
	}
}

// TestSecretsOfPods: one of each place that names a Secret.
func TestSecretsOfPods(t *testing.T) {
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	env := func(name string) ([]corev1.EnvFromSource, []corev1.EnvVar) {
		return []corev1.EnvFromSource{{}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *ref(name + "-from")}}},
			[]corev1.EnvVar{{Name: "plain"}, {ValueFrom: &corev1.EnvVarSource{}}, {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *ref(name)}}}}
	}
	var c, i, e corev1.Container
	c.EnvFrom, c.Env = env("container")
	i.EnvFrom, i.Env = env("init")
	e.EnvFrom, e.Env = env("ephemeral")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{*ref("pull")},
		Containers:       []corev1.Container{c}, InitContainers: []corev1.Container{i},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: e.EnvFrom, Env: e.Env}}},
	}}
	for _, source := range []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {Secret: &corev1.SecretProjection{LocalObjectReference: *ref("projected")}}}}},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: ref("ceph")}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: ref("cinder")}},
		{FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref("flex")}},
		{RBD: &corev1.RBDVolumeSource{SecretRef: ref("rbd")}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: ref("scaleio")}},
		{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref("iscsi")}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref("storageos")}},
		{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: ref("csi")}},
		{CSI: &corev1.CSIVolumeSource{}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	var got []string
	secretsOf(pod, func(name string) { got = append(got, name) })
	want := []string{"pull", "init-from", "init", "container-from", "container", "ephemeral-from", "ephemeral", "secret", "projected",
		"azure", "ceph", "cinder", "flex", "rbd", "scaleio", "iscsi", "storageos", "csi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTokensThatNobodyUsesGo once their use was recorded for a year; the bubble begins with the year 2000.
func TestTokensThatNobodyUsesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, owner("u1", "s", "mounted", "refused"))
		reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}}})
		for _, name := range []string{"s", "mounted", "made", "refused"} {
			s := secret("u1")
			s.Name, s.CreationTimestamp = name, metav1.NewTime(time.Now().Add(-3*unusedPeriod))
			if name == "refused" {
				s.Labels = map[string]string{invalidSinceLabel: "1999-01-02"}
			}
			reconciletest.Add(w, s)
		}
		w.Run(NewCleaner()) // before anybody has written since when
		expect := func(want ...string) {
			t.Helper()
			w.Settle()
			if diff := cmp.Diff(want, w.Writes()); diff != "" {
				t.Errorf("%v: %s", time.Now(), diff)
			}
			time.Sleep(interval)
		}
		expect()
		reconciletest.Add(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: trackingConfig}, Data: map[string]string{trackingKey: "1999-01-03"}})
		expect() // the second of January
		expect() // the third
		expect("delete secrets ns/refused", "patch secrets ns/s")
		expect()
		got, err := w.Client.CoreV1().Secrets("ns").Get(t.Context(), "s", metav1.GetOptions{})
		if err != nil || got.Labels[invalidSinceLabel] != "2000-01-04" {
			t.Errorf("%v, %v", got.Labels, err)
		}
	})
}

// TestTrackingThatCannotBeReadEndsNothing.
func TestTrackingThatCannotBeReadEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: trackingConfig}, Data: map[string]string{trackingKey: "always"}})
		reconciletest.Add(w, owner("u1", "s"))
		s := secret("u1")
		s.CreationTimestamp = metav1.NewTime(time.Now().Add(-3 * unusedPeriod))
		reconciletest.Add(w, s)
		w.Run(NewCleaner())
		time.Sleep(3 * interval)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("%v", writes)
		}
	})
}
