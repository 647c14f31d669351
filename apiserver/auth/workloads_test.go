package auth_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	rest "github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// running returns an index over a store that holds the pods.
func running(t *testing.T, pods ...*corev1.Pod) (*auth.Workloads, *storage.Store) {
	t.Helper()
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	w := auth.NewWorkloads(store, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, p := range pods {
		put(t, w, store, p)
	}
	return w, store
}

func put(t *testing.T, w *auth.Workloads, store *storage.Store, pod *corev1.Pod) {
	t.Helper()
	write(t, w, store, pod.Name, &storage.Change{Object: pod})
}

func write(t *testing.T, w *auth.Workloads, store *storage.Store, name string, change *storage.Change) {
	t.Helper()
	written, err := store.Table(podsResource).Write(t.Context(), "x", name, func(*storage.View) (*storage.Change, error) { return change, nil })
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.CatchUp(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
}

func podOn(node, name string, spec corev1.PodSpec) *corev1.Pod {
	spec.NodeName = node
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name)}, Spec: spec}
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

// workloads are a pod of each place where a secret can be named, and pods elsewhere.
func workloads(t *testing.T) *auth.Workloads {
	t.Helper()
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	mine := podOn("a", "mine", corev1.PodSpec{
		ServiceAccountName: "robot",
		ImagePullSecrets:   []corev1.LocalObjectReference{named("pulls")},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("init")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("env-from")}},
		}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("env")},
		}}}}},
		Volumes: []corev1.Volume{
			{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: named("projected")}},
			}}}},
			{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		},
	})
	w, store := running(t, mine,
		podOn("b", "theirs", corev1.PodSpec{ServiceAccountName: "other", Volumes: []corev1.Volume{secretVolume("theirs")}}),
		podOn("", "pending", corev1.PodSpec{ServiceAccountName: "other", Volumes: []corev1.Volume{secretVolume("pending")}}))
	putOfNodes(t, store)
	return w
}

// narrowed is a request for the objects of a node.
func narrowed(who user.Info, verb, group, resource, node string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: group, APIVersion: "v1", Resource: resource, ResourceRequest: true,
		FieldSelectorRequirements: fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: node}},
	}
}

// putOfNodes stores objects that belong to a node by their spec.
func putOfNodes(t *testing.T, store *storage.Store) {
	t.Helper()
	a, b := "a", "b"
	for _, object := range []resourceObject{
		{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: resourcev1.ResourceSliceSpec{NodeName: &a}}},
		{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: resourcev1.ResourceSliceSpec{NodeName: &b}}},
		{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "everybodys"}}},
		{storagev1.SchemeGroupVersion.WithResource("volumeattachments"), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: a}}},
		{storagev1.SchemeGroupVersion.WithResource("volumeattachments"), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: b}}},
		{volumesResource, volumeOf("disk")},
		{volumesResource, volumeOf("elsewhere")},
	} {
		_, err := store.Table(object.gvr).Write(t.Context(), "", object.GetName(), func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: object.Object}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var volumesResource = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

// volumeOf is a volume of a claim in x, with Secrets for its driver.
func volumeOf(claim string) *corev1.PersistentVolume {
	secret := func(use string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: "storage", Name: claim + "-" + use}
	}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "x", Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodeStageSecretRef: secret("stage"), NodePublishSecretRef: secret("publish"), NodeExpandSecretRef: secret("expand"),
			ControllerPublishSecretRef: secret("controller"),
		}},
	}}
}

type resourceObject struct {
	gvr schema.GroupVersionResource
	rest.Object
}

// podsOn is a watch of the pods of one node.
func podsOn(who user.Info, node string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: "watch", APIVersion: "v1", Resource: "pods", ResourceRequest: true,
		FieldSelectorRequirements: fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: node}},
	}
}

// TestWorkloadsFollowPods: what a node may read ends with the last pod that needs it.
func TestWorkloadsFollowPods(t *testing.T) {
	w, store := running(t,
		podOn("a", "one", corev1.PodSpec{Volumes: []corev1.Volume{secretVolume("s")}}),
		podOn("a", "two", corev1.PodSpec{Volumes: []corev1.Volume{secretVolume("s")}}))
	rules := auth.NewAuthorizer(auth.Config{Workloads: w})
	expect := func(step string, allowed bool) {
		t.Helper()
		decision, _, err := rules.Authorize(t.Context(), resource(nodeA, "get", "", "secrets", "", "x", "s"))
		if err != nil || (decision == authorizer.DecisionAllow) != allowed {
			t.Errorf("%s: %v, %v", step, decision, err)
		}
	}
	expect("two pods", true)
	write(t, w, store, "one", &storage.Change{Delete: true})
	expect("one pod", true)
	reported := podOn("a", "two", corev1.PodSpec{Volumes: []corev1.Volume{secretVolume("s")}})
	reported.Status.Phase = corev1.PodRunning
	put(t, w, store, reported)
	expect("its status changed", true)
	again := podOn("a", "two", corev1.PodSpec{Volumes: []corev1.Volume{secretVolume("other")}})
	again.UID = "made anew"
	write(t, w, store, "two", &storage.Change{Delete: true})
	put(t, w, store, again)
	expect("made anew without it", false)
}

// TestClaimsMadeForPods: a node may read the claims that were made for its pods, as their status says now.
func TestClaimsMadeForPods(t *testing.T) {
	pod := func(claim, extended string) *corev1.Pod {
		p := podOn("a", "one", corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("t")}}})
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
		if extended != "" {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: extended}
		}
		return p
	}
	w, store := running(t, pod("first", ""))
	rules := auth.NewAuthorizer(auth.Config{Workloads: w})
	expect := func(step string, readable ...string) {
		t.Helper()
		for _, name := range []string{"first", "second", "extended"} {
			decision, _, err := rules.Authorize(t.Context(), resource(nodeA, "get", "resource.k8s.io", "resourceclaims", "", "x", name))
			if allowed := decision == authorizer.DecisionAllow; err != nil || allowed != slices.Contains(readable, name) {
				t.Errorf("%s: %s allowed: %v, %v", step, name, allowed, err)
			}
		}
	}
	expect("named", "first")
	put(t, w, store, pod("second", ""))
	expect("another was made", "second")
	put(t, w, store, pod("second", "extended"))
	expect("extended resources are devices", "second", "extended")
}
