package staticpods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is all that a plan depends on.
type world struct {
	// wanted are the pods of the folder.
	wanted []*corev1.Pod
	// running are those that were started and have not ended, ending or not, by uid.
	running map[types.UID]*corev1.Pod
	// ending are those of them that were told to.
	ending map[types.UID]bool
	// mirrors are the mirror pods of this node; known says that these are all.
	mirrors []*corev1.Pod
	known   bool
}

// steps of one round.
type steps struct {
	start, end []*corev1.Pod
	// create are static pods whose mirror is missing, remove mirror pods that show nothing that is.
	create, remove []*corev1.Pod
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// plan says what to do. Of several manifests of one name the first counts, and a changed one starts when the old one has ended.
func plan(w world) steps {
	var s steps
	wanted := map[types.NamespacedName]*corev1.Pod{}
	for _, pod := range w.wanted {
		if wanted[nameOf(pod)] == nil {
			wanted[nameOf(pod)] = pod
		}
	}
	runs := map[types.NamespacedName]*corev1.Pod{}
	for uid, pod := range w.running {
		runs[nameOf(pod)] = pod
		if want := wanted[nameOf(pod)]; (want == nil || want.UID != uid) && !w.ending[uid] {
			s.end = append(s.end, pod)
		}
	}
	for _, pod := range w.wanted {
		if wanted[nameOf(pod)] == pod && runs[nameOf(pod)] == nil {
			s.start = append(s.start, pod)
		}
	}
	if w.known {
		w.planMirrors(&s, runs)
	}
	return s
}

// planMirrors: a mirror that somebody deletes is taken away, and the next round makes it anew.
func (w world) planMirrors(s *steps, runs map[types.NamespacedName]*corev1.Pod) {
	shown := map[types.NamespacedName]bool{}
	for _, mirror := range w.mirrors {
		pod := runs[nameOf(mirror)]
		shown[nameOf(mirror)] = true
		if pod == nil || mirror.DeletionTimestamp != nil || mirror.Annotations[corev1.MirrorPodAnnotationKey] != string(pod.UID) {
			s.remove = append(s.remove, mirror)
		}
	}
	for name, pod := range runs {
		if !shown[name] && !w.ending[pod.UID] {
			s.create = append(s.create, pod)
		}
	}
}
