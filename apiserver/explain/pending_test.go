package explain

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/storage/volume"

	appsv1 "k8s.io/api/apps/v1"
)

// byPlugin is a pod of a Deployment that one plugin keeps off node a.
func byPlugin(plugin, reason, remedy, command string, change func(*corev1.Pod, *corev1.Node)) wanted {
	pod, node := ownedBy(waiting("p"), ReplicaSets, "web-1"), aNode("a", true)
	if change != nil {
		change(pod, node)
	}
	s := (&scene{judgement: refused(plugin, reason, remedy, node, 500)}).with(Pods, pod).with(Nodes, node).
		with(ReplicaSets, ownedBy(&appsv1.ReplicaSet{ObjectMeta: meta("web-1")}, Deployments, "web"))
	return wanted{
		scene: s, of: Pods.Named("n", "p"), guilty: Nodes.Named("", "a"), what: plugin + ": " + reason, command: command,
		innocent: [][2]string{{"Pod/p", "NodePorts accepts all 2 nodes"}, {"Pod/p", "VolumeZone accepts all 2 nodes"}},
	}
}

func pendingScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"too little CPU": func() wanted {
			return byPlugin("NodeResourcesFit", "Insufficient cpu", "1 cpu were freed", "kubectl -n n set resources deployments.apps web --requests=cpu=500m", nil)
		},
		"taint": func() wanted {
			return byPlugin("TaintToleration", "node(s) had untolerated taint(s)", "the pod tolerated taint k=v:NoSchedule", "kubectl taint nodes a k=v:NoSchedule-",
				func(_ *corev1.Pod, node *corev1.Node) {
					node.Spec.Taints = []corev1.Taint{{Key: "k", Value: "w", Effect: "NoExecute"}, {Key: "k", Value: "v", Effect: "NoSchedule"}}
				})
		},
		"taint of a loop": func() wanted {
			return byPlugin("TaintToleration", "untolerated", "the pod tolerated taint node.kubernetes.io/not-ready:NoSchedule", "",
				func(_ *corev1.Pod, node *corev1.Node) {
					node.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}}
				})
		},
		"cordoned": func() wanted {
			return byPlugin("NodeUnschedulable", "node(s) were unschedulable", "it were uncordoned", "kubectl uncordon a", nil)
		},
		"selector": func() wanted {
			return byPlugin("NodeAffinity", "didn't match", "it had label disk=fast", "kubectl label nodes a disk=fast --overwrite",
				func(pod *corev1.Pod, node *corev1.Node) {
					pod.Spec.NodeSelector, node.Labels = map[string]string{"disk": "fast", "os": "linux"}, map[string]string{"os": "linux"}
				})
		},
		"anti-affinity": func() wanted {
			return byPlugin("InterPodAffinity", "node(s) didn't match pod anti-affinity rules", "the pods its anti-affinity excludes left host=a", "", nil)
		},
		"hard spread": func() wanted {
			return byPlugin("PodTopologySpread", "node(s) didn't match pod topology spread constraints", "zone=z ran fewer of them", "", nil)
		},
		"scheduling gate": func() wanted {
			pod := waiting("p")
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
			fits := Judgement{Nodes: []JudgedNode{{Node: Node{Name: "a"}, Object: aNode("a", true)}, {Node: Node{Name: "b"}, Object: aNode("b", true)}}}
			return wanted{
				scene: (&scene{judgement: fits}).with(Pods, pod), of: Pods.Named("n", "p"), guilty: Pods.Named("n", "p"), what: `"example.com/wait" is not removed`,
				command:  `kubectl -n n patch pods p --type=strategic -p '{"spec":{"schedulingGates":[{"$patch":"delete","name":"example.com/wait"}]}}'`,
				innocent: [][2]string{{"Node/a", "accepts"}, {"Node/b", "accepts"}},
			}
		},
	}
}

func aClaim(name, class string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta(name), Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: "v-" + name, Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")},
		}},
	}
}

func aVolume(name, class, size string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: unbound(name), Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

func aClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: unbound(name), Provisioner: provisioner, VolumeBindingMode: &mode}
}

// unboundPod waits for its claims, and one of them is bound.
func unboundPod(claims ...string) *scene {
	return (&scene{judgement: Judgement{Refusal: "pod has unbound immediate PersistentVolumeClaims", Message: "0/1 nodes are available"}}).
		with(Pods, using(waiting("p"), append(claims, "fine")...)).with(Claims, aClaim("fine", "fast", corev1.ClaimBound)).with(Nodes, aNode("a", true))
}

func claimScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"missing claim": func() wanted {
			return wanted{
				scene: unboundPod("data"), of: Pods.Named("n", "p"), guilty: Claims.Named("n", "data"), what: "does not exist",
				innocent: [][2]string{{"PersistentVolumeClaim/fine", "bound to v-fine"}, {"Node/a", "Ready"}},
			}
		},
		"class without provisioner": func() wanted {
			s := unboundPod("data").with(Claims, aClaim("data", "hand", corev1.ClaimPending)).
				with(StorageClasses, aClass("hand", noProvisioner, storagev1.VolumeBindingImmediate), aClass("fast", "csi.example.com", storagev1.VolumeBindingImmediate)).
				with(Volumes, aVolume("small", "hand", "1Gi"))
			return wanted{
				scene: s, of: Pods.Named("n", "p"), guilty: StorageClasses.Named("", "hand"), what: "has no provisioner",
				innocent: [][2]string{{"PersistentVolumeClaim/fine", "bound"}, {"Node/a", "Ready"}},
			}
		},
		"the claim itself": func() wanted {
			w := claimScenes()["class without provisioner"]()
			w.of = Claims.Named("n", "data")
			w.innocent = [][2]string{{"PersistentVolume/small", "it has 1Gi, and the claim wants 5Gi"}, {"StorageClass/fast", "does not name it"}}
			return w
		},
		"missing class": func() wanted {
			w := claimScenes()["the claim itself"]()
			w.scene = unboundPod("data").with(Claims, aClaim("data", "typo", corev1.ClaimPending)).
				with(StorageClasses, aClass("fast", "x", storagev1.VolumeBindingImmediate)).with(Volumes, aVolume("other", "fast", "9Gi"))
			w.guilty, w.what = StorageClasses.Named("", "typo"), "does not exist"
			w.innocent = [][2]string{{"StorageClass/fast", "does not name it"}, {"PersistentVolume/other", "of the class"}}
			return w
		},
		"provisioner that is away": func() wanted {
			claim := aClaim("data", "late", corev1.ClaimPending)
			claim.Annotations = map[string]string{volume.AnnSelectedNode: "a"}
			s := unboundPod("data").with(Claims, claim).with(StorageClasses, aClass("late", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
			s.judgement = Judgement{Plugins: []string{"NodePorts"}, Nodes: []JudgedNode{{Node: Node{Name: "a"}, Object: aNode("a", true)}}}
			return wanted{
				scene: s, of: Pods.Named("n", "p"), guilty: StorageClasses.Named("", "late"), what: "no CSIDriver/csi.example.com is registered",
				innocent: [][2]string{{"PersistentVolumeClaim/fine", "bound"}, {"Pod/p", "NodePorts accepts all 1 nodes"}},
			}
		},
	}
}
