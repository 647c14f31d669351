package controllers

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// idle are machines that do nothing.
func idle(*reconciletest.World) {}

// deleted is a step that deletes objects.
func deleted(objects ...runtime.Object) func(w *reconciletest.World) {
	return func(w *reconciletest.World) {
		for _, o := range objects {
			w.Delete(o)
		}
	}
}

func serviceOf(selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: web(), Spec: corev1.ServiceSpec{
		Selector: selector, ClusterIP: "10.96.0.7", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}},
	}}
}

func backend(i int) *corev1.Pod {
	ip := fmt.Sprintf("10.42.0.%d", i)
	p := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("p%d", i)), Spec: corev1.PodSpec{NodeName: "node-0"},
		Status: corev1.PodStatus{PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}}
	reconciletest.SetReady(p, true)
	return p
}

func endpointsOf(ips ...string) *corev1.Endpoints {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}}
	for _, ip := range ips {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: ip})
	}
	return &corev1.Endpoints{ObjectMeta: web(), Subsets: []corev1.EndpointSubset{subset}}
}

var services = []scenario{{
	name:        "service",
	controllers: []string{"endpoint-controller", "endpoint-slice-controller"},
	steps: []func(w *reconciletest.World){
		added(readyNode("node-0"), serviceOf(appLabels), backend(1), backend(2), backend(3)),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, backend(1), func(p *corev1.Pod) { reconciletest.SetReady(p, false) })
			w.RemovePod(backend(2))
			reconciletest.Add(w, backend(4))
		},
		deleted(serviceOf(nil)),
	},
	machines: idle,
}, {
	name:        "service without a selector",
	controllers: []string{"endpoint-slice-mirroring-controller"},
	steps: []func(w *reconciletest.World){
		added(serviceOf(nil), endpointsOf("10.0.0.1", "10.0.0.2")),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, endpointsOf(), func(e *corev1.Endpoints) { e.Subsets = endpointsOf("10.0.0.2", "10.0.0.3").Subsets })
		},
		deleted(endpointsOf()),
	},
	machines: idle,
}, {
	name:        "range of service addresses",
	controllers: []string{"service-cidr-controller"},
	steps: []func(w *reconciletest.World){
		added(&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.1.0.0/24"}}}),
		deleted(&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}}),
	},
	machines: idle,
}, {
	name:        "addresses of services",
	controllers: []string{"ipallocator-repair-controller"},
	steps: []func(w *reconciletest.World){
		// The address comes first, as the API server does it: for a Service without one the loop makes it.
		added(serviceRange(), addressOf("web"), addressOf("gone"), serviceWithAddress()),
		deleted(addressOf("web")),
		deleted(serviceWithAddress()),
	},
	machines: idle,
}, {
	name:        "budget",
	controllers: []string{"disruption-controller", "replicaset-controller", "deployment-controller"},
	steps: []func(w *reconciletest.World){
		added(deploymentOf(3, "RollingUpdate"), &policyv1.PodDisruptionBudget{ObjectMeta: web(), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: appLabels}}}),
		rolled("v1", 5),
		func(w *reconciletest.World) { p := active(w)[0]; w.Delete(&p) },
	},
}}

func serviceRange() *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
}

func serviceWithAddress() *corev1.Service {
	s := serviceOf(nil)
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	return s
}

// addressOf is an IPAddress that names a Service: that of the Service "web", or another.
func addressOf(service string) *networkingv1.IPAddress {
	name := map[string]string{"web": "10.96.0.7"}[service]
	if name == "" {
		name = "10.96.0.8"
	}
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: "IPv4", networkingv1.LabelManagedBy: "ipallocator.k8s.io"}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "ns", Name: service}},
	}
}

func leaseOf(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
}

// living says which nodes are alive.
const living = "test/living"

func livingNode(name string) *corev1.Node {
	n := readyNode(name)
	n.Annotations = map[string]string{living: "true"}
	return n
}

// nodesLive renew the Leases of living nodes and end their terminating pods.
func nodesLive(w *reconciletest.World) {
	alive := map[string]bool{}
	for _, o := range w.Objects()[corev1.SchemeGroupVersion.WithResource("nodes")] {
		node := o.(*corev1.Node)
		if alive[node.Name] = node.Annotations[living] == "true"; alive[node.Name] {
			reconciletest.Edit(w, leaseOf(node.Name), func(l *coordinationv1.Lease) { l.Spec.RenewTime = new(metav1.NowMicro()) })
		}
	}
	for _, p := range w.Pods("ns") {
		if p.DeletionTimestamp != nil && alive[p.Spec.NodeName] {
			w.RemovePod(&p)
		}
	}
}

func podOn(node, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(name), Spec: corev1.PodSpec{NodeName: node}}
	reconciletest.SetReady(p, true)
	return p
}

var nodes = []scenario{{
	name:        "node that dies and goes",
	controllers: []string{"node-controller", "pod-garbage-collector", "ttl-controller", "node-ipam-controller"},
	steps: []func(w *reconciletest.World){
		added(livingNode("node-0"), livingNode("node-1"), livingNode("node-2"), leaseOf("node-0"), leaseOf("node-1"), leaseOf("node-2"),
			podOn("node-0", "a"), podOn("node-1", "b"), podOn("node-1", "c")),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, readyNode("node-1"), func(n *corev1.Node) { n.Annotations[living] = "false" })
		},
		idle,
		deleted(readyNode("node-1"), leaseOf("node-1")),
		idle,
	},
	machines: nodesLive,
}}

func clusterRole(name string, resources ...string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"to": "all"}}}
	for _, of := range resources {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{of}})
	}
	return r
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
}

var basics = []scenario{{
	name: "namespace",
	controllers: []string{"serviceaccount-controller", "root-ca-cert-publisher", "namespace-controller",
		"kube-apiserver-serving-clustertrustbundle-publisher-controller"},
	steps: []func(w *reconciletest.World){
		added(namespaceOf("other")),
		func(w *reconciletest.World) {
			of := metav1.ObjectMeta{Namespace: "other", Name: "default"}
			w.Delete(&corev1.ServiceAccount{ObjectMeta: of})
			of.Name = "kube-root-ca.crt"
			reconciletest.Edit(w, &corev1.ConfigMap{ObjectMeta: of}, func(c *corev1.ConfigMap) { c.Data = nil })
		},
		deleted(namespaceOf("other")),
	},
	machines: idle,
}, {
	name:        "roles that gather",
	controllers: []string{"clusterrole-aggregation-controller"},
	steps: []func(w *reconciletest.World){
		added(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": "all"}}}}}, clusterRole("a", "pods"), clusterRole("b", "secrets")),
		deleted(clusterRole("a")),
	},
	machines: idle,
}, {
	name:        "flow schema",
	controllers: []string{"flow-schema-controller"},
	steps: []func(w *reconciletest.World){
		added(&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "some"}, Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "level"}}}),
		added(&flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "level"}}),
	},
	machines: idle,
}}

func volumeOf(name, size string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: sizes(size), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.test", VolumeHandle: name}},
	}}
}

func sizes(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func claimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: sizes(size)}}
}

func podWith(source corev1.VolumeSource) *corev1.Pod {
	p := podOn("node-0", "user")
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	return p
}

// attach plays the attacher of a CSI driver and the node: what is asked for is attached, and used while a pod is there.
func attach(w *reconciletest.World) {
	for _, o := range w.Objects()[storagev1.SchemeGroupVersion.WithResource("volumeattachments")] {
		reconciletest.Edit(w, o.(*storagev1.VolumeAttachment), func(a *storagev1.VolumeAttachment) { a.Status.Attached = true })
	}
	used := len(w.Pods("ns")) > 0
	reconciletest.Edit(w, readyNode("node-0"), func(n *corev1.Node) {
		n.Status.VolumesInUse = nil
		if used {
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/csi.test^v"}
		}
	})
}

var storage = []scenario{{
	name:        "claims",
	controllers: []string{"persistentvolume-controller", "storage-protection-controller", "ephemeral_volume"},
	steps: []func(w *reconciletest.World){
		added(volumeOf("small", "1Gi"), volumeOf("large", "2Gi")),
		added(&corev1.PersistentVolumeClaim{ObjectMeta: web(), Spec: claimSpec("1Gi")}),
		added(podWith(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec("2Gi")}}})),
		func(w *reconciletest.World) {
			w.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: web()})
			w.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: named("user-v")})
		},
		func(w *reconciletest.World) { w.RemovePod(podOn("", "user")) },
	},
	machines: idle,
}, {
	name:        "attached volume",
	controllers: []string{"attachdetach-controller"},
	steps: []func(w *reconciletest.World){
		func(w *reconciletest.World) {
			node, volume := readyNode("node-0"), volumeOf("v", "1Gi")
			node.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: web(), Spec: claimSpec("1Gi"), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
			claim.Spec.VolumeName, claim.UID = "v", "of-web"
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "web", UID: claim.UID}
			added(node, volume, claim, podWith(corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web"}}))(w)
		},
		func(w *reconciletest.World) { w.RemovePod(podOn("", "user")) },
	},
	machines: attach,
}}
