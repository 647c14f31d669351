package explain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
)

// volumesOf blames the claims of a pod that are missing or wait, and clears the others. A claim that waits for its first pod
// holds none, unless the nodes say so; those of a gated pod are not to blame yet.
func (e *explainer) volumesOf(f *finding, pod *corev1.Pod, gated bool) {
	for i := range pod.Spec.Volumes {
		name, is := claimOf(pod, &pod.Spec.Volumes[i])
		if !is {
			continue
		}
		claim, exists := get[*corev1.PersistentVolumeClaim](e, name)
		switch {
		case gated && exists:
			f.clear(name, "it exists")
		case gated:
		case !exists:
			f.blame(Cause{Object: name, What: "the claim does not exist", Change: "create " + name.String()})
		case claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound && !e.isLate(claim):
			if cause, held := e.because(name, claim); held {
				f.blame(cause)
			}
		case claim.Status.Phase == corev1.ClaimBound:
			f.clear(name, "it is bound to %s", claim.Spec.VolumeName)
		case claim.Annotations[volume.AnnSelectedNode] == "":
			f.clear(name, "it gets a volume once the pod has a node")
		}
	}
}

func claimOf(pod *corev1.Pod, v *corev1.Volume) (Object, bool) {
	switch {
	case v.PersistentVolumeClaim != nil:
		return Claims.Named(pod.Namespace, v.PersistentVolumeClaim.ClaimName), true
	case v.Ephemeral != nil:
		return Claims.Named(pod.Namespace, ephemeral.VolumeClaimName(pod, v)), true
	}
	return Object{}, false
}

// isLate tells that the claim waits until a pod has a node.
func (e *explainer) isLate(claim *corev1.PersistentVolumeClaim) bool {
	class, exists := get[*storagev1.StorageClass](e, StorageClasses.Named("", className(claim)))
	return exists && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func className(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// selectedClaims blames the late claims for which the scheduler has chosen a node, and nobody makes a volume.
func (e *explainer) selectedClaims(f *finding, pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		name, is := claimOf(pod, &pod.Spec.Volumes[i])
		claim, exists := get[*corev1.PersistentVolumeClaim](e, name)
		if is && exists && claim.Status.Phase != corev1.ClaimBound && claim.Annotations[volume.AnnSelectedNode] != "" {
			if cause, held := e.because(name, claim); held {
				f.blame(cause)
			}
		}
	}
}

// claim explains a claim that is not being deleted.
func (e *explainer) claim(name Object, claim *corev1.PersistentVolumeClaim) finding {
	f := finding{}
	switch claim.Status.Phase {
	case corev1.ClaimBound:
		f.clear(Volumes.Named("", claim.Spec.VolumeName), "it is bound to the claim")
		return f.conclude("", name.String()+" is bound")
	case corev1.ClaimLost:
		f.blame(Cause{
			Object: Volumes.Named("", claim.Spec.VolumeName), What: "the volume of the claim does not exist any more",
			Change: "restore the volume, or delete the claim and make it again",
		})
		return f.conclude(name.String()+" has lost its volume", "")
	}
	e.class(&f, name, claim)
	e.clearVolumes(&f, claim)
	e.clearClasses(&f, claim)
	return f.conclude(name.String()+" is not bound", name.String()+" is not bound yet, and nothing is known to hold it")
}

// class blames what should make or find the volume.
func (e *explainer) class(f *finding, name Object, claim *corev1.PersistentVolumeClaim) {
	wanted := StorageClasses.Named("", className(claim))
	class, exists := get[*storagev1.StorageClass](e, wanted)
	size := claim.Spec.Resources.Requests.Storage().String()
	switch {
	case wanted.Name == "":
		f.blame(Cause{
			Object: name, What: "it names no class, so only a volume without a class that is there already can be bound",
			Change: fmt.Sprintf("create a PersistentVolume without a class, of at least %s, or make the claim again with a class", size),
		})
	case !exists:
		f.blame(Cause{
			Object: wanted, What: "the class of the claim does not exist",
			Change: "create " + wanted.String() + ", or make the claim again with another class",
		})
	case e.isLate(claim) && claim.Annotations[volume.AnnSelectedNode] == "" && class.Provisioner != noProvisioner:
		e.firstPod(f, name)
	default:
		e.provisioner(f, claim, class, size)
	}
}

// noProvisioner is of classes whose volumes people make.
const noProvisioner = "kubernetes.io/no-provisioner"

func (e *explainer) provisioner(f *finding, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, size string) {
	cause := Cause{
		Object: StorageClasses.of(class),
		Change: fmt.Sprintf("create a PersistentVolume of class %s, of at least %s", class.Name, size),
	}
	driver := Drivers.Named("", class.Provisioner)
	switch {
	case class.Provisioner == noProvisioner:
		cause.What = "the class has no provisioner, so its volumes have to be made by hand, and none is free that fits"
	case e.Get(driver) == nil:
		cause.What = fmt.Sprintf("the provisioner %q makes no volume, and no %s is registered", class.Provisioner, driver)
		cause.Change = "install the provisioner, or " + cause.Change
	default:
		cause.What = fmt.Sprintf("the provisioner %q has not made a volume yet", class.Provisioner)
		f.clear(driver, "it is registered")
	}
	if warning := e.lastWarning(claim); warning != nil {
		cause.What += ": " + warning.Reason + ": " + warning.Message
	}
	f.blame(cause)
}

// firstPod: the claim waits for a pod that uses it and has a node.
func (e *explainer) firstPod(f *finding, name Object) {
	users := e.usersOf(name)
	if len(users) == 0 {
		f.blame(Cause{Object: name, What: "its class makes a volume for the first pod that uses the claim, and no pod does", Change: "create a pod that uses it"})
		return
	}
	for _, pod := range users {
		if cause, held := e.because(Pods.of(pod), pod); held && pod.Spec.NodeName == "" {
			f.blame(cause)
		}
	}
}

// usersOf are the pods that have not finished and use the claim.
func (e *explainer) usersOf(claim Object) (users []*corev1.Pod) {
	for _, pod := range list[*corev1.Pod](e, Pods, claim.Namespace) {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for i := range pod.Spec.Volumes {
			if used, is := claimOf(pod, &pod.Spec.Volumes[i]); is && used == claim {
				users = append(users, pod)
			}
		}
	}
	return users
}

// clearVolumes tells of volumes that are there and are not for this claim, and of other claims that are bound.
func (e *explainer) clearVolumes(f *finding, claim *corev1.PersistentVolumeClaim) {
	for _, v := range firstOf(list[*corev1.PersistentVolume](e, Volumes, "")) {
		have, want := v.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
		switch {
		case v.Status.Phase == corev1.VolumeBound:
			f.clear(Volumes.of(v), "it is bound to another claim")
		case v.Spec.StorageClassName != className(claim):
			f.clear(Volumes.of(v), "it is of the class %q", v.Spec.StorageClassName)
		case have.Cmp(want) < 0:
			f.clear(Volumes.of(v), "it has %s, and the claim wants %s", have.String(), want.String())
		}
	}
	for _, other := range firstOf(list[*corev1.PersistentVolumeClaim](e, Claims, claim.Namespace)) {
		if other.Name != claim.Name && other.Status.Phase == corev1.ClaimBound {
			f.clear(Claims.of(other), "it is bound, so claims of the namespace can be")
		}
	}
}

// clearClasses clears the classes that the claim does not name.
func (e *explainer) clearClasses(f *finding, claim *corev1.PersistentVolumeClaim) {
	for _, class := range firstOf(list[*storagev1.StorageClass](e, StorageClasses, "")) {
		if class.Name != className(claim) {
			f.clear(StorageClasses.of(class), "it exists, and the claim does not name it")
		}
	}
}
