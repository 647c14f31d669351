package resourceclaim

import (
	"crypto/sha256"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// nameTries is how many names are tried for a claim when others have them.
	nameTries = 3
	// baseMax is how long the base of a name may be, in bytes: a name of 63 ends with a hyphen and five letters.
	baseMax = 57
	// suffixLen is how many letters end a name, as where the API generates one.
	suffixLen = 5
	// suffixLetters are those of names that the API generates.
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// planClaim is the claim of a pod's entry.
func planClaim(pod *corev1.Pod, entry string, template *resourcev1.ResourceClaimTemplate, try int) *resourcev1.ResourceClaim {
	annotations := map[string]string{}
	maps.Copy(annotations, template.Spec.Annotations)
	annotations[resourcev1.PodResourceClaimAnnotation] = entry
	base := baseName(pod.Name, entry)
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: base, Name: base + suffix(pod, entry, try),
			Annotations: annotations, Labels: maps.Clone(template.Spec.Labels),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
			}},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
}

// baseName is what a claim's name begins with. If both names are long, both are cut, in proportion.
func baseName(pod, entry string) string {
	base := pod + "-" + entry + "-"
	if n := len(base); n > baseMax {
		return pod[:len(pod)*baseMax/n] + "-" + entry[:len(entry)*baseMax/n]
	}
	return base
}

// suffix looks like one that the API generates, and is the same for the same pod, entry and try.
func suffix(pod *corev1.Pod, entry string, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, entry, try))
	letters := make([]byte, suffixLen)
	for i := range letters {
		letters[i] = suffixLetters[int(sum[i])%len(suffixLetters)]
	}
	return string(letters)
}

// isPod is true of a user of a claim that is a pod.
func isPod(u user) bool {
	return u.APIGroup == "" && u.Resource == "pods"
}

// owningPod is the reference to the pod for which a claim was made; nil if it was made for none.
func owningPod(claim *resourcev1.ResourceClaim) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Pod" {
		return nil
	}
	return owner
}
