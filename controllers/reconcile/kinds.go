package reconcile

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type definition = apiextensionsv1.CustomResourceDefinition

// Kinds that several controllers read. One that a single controller reads is declared in
// its own folder, with KindOf.
var (
	Deployments               = KindOf[*appsv1.Deployment](appsv1.SchemeGroupVersion.WithResource("deployments"))
	ReplicaSets               = KindOf[*appsv1.ReplicaSet](appsv1.SchemeGroupVersion.WithResource("replicasets"))
	StatefulSets              = KindOf[*appsv1.StatefulSet](appsv1.SchemeGroupVersion.WithResource("statefulsets"))
	DaemonSets                = KindOf[*appsv1.DaemonSet](appsv1.SchemeGroupVersion.WithResource("daemonsets"))
	ControllerRevisions       = KindOf[*appsv1.ControllerRevision](appsv1.SchemeGroupVersion.WithResource("controllerrevisions"))
	Jobs                      = KindOf[*batchv1.Job](batchv1.SchemeGroupVersion.WithResource("jobs"))
	ReplicationControllers    = KindOf[*corev1.ReplicationController](corev1.SchemeGroupVersion.WithResource("replicationcontrollers"))
	Pods                      = KindOf[*corev1.Pod](corev1.SchemeGroupVersion.WithResource("pods"))
	Nodes                     = KindOf[*corev1.Node](corev1.SchemeGroupVersion.WithResource("nodes"))
	Namespaces                = KindOf[*corev1.Namespace](corev1.SchemeGroupVersion.WithResource("namespaces"))
	Services                  = KindOf[*corev1.Service](corev1.SchemeGroupVersion.WithResource("services"))
	ServiceCIDRs              = KindOf[*networkingv1.ServiceCIDR](networkingv1.SchemeGroupVersion.WithResource("servicecidrs"))
	Endpoints                 = KindOf[*corev1.Endpoints](corev1.SchemeGroupVersion.WithResource("endpoints"))
	EndpointSlices            = KindOf[*discoveryv1.EndpointSlice](discoveryv1.SchemeGroupVersion.WithResource("endpointslices"))
	ServiceAccounts           = KindOf[*corev1.ServiceAccount](corev1.SchemeGroupVersion.WithResource("serviceaccounts"))
	Events                    = KindOf[*corev1.Event](corev1.SchemeGroupVersion.WithResource("events"))
	ConfigMaps                = KindOf[*corev1.ConfigMap](corev1.SchemeGroupVersion.WithResource("configmaps"))
	PersistentVolumes         = KindOf[*corev1.PersistentVolume](corev1.SchemeGroupVersion.WithResource("persistentvolumes"))
	PersistentVolumeClaims    = KindOf[*corev1.PersistentVolumeClaim](corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
	StorageClasses            = KindOf[*storagev1.StorageClass](storagev1.SchemeGroupVersion.WithResource("storageclasses"))
	CustomResourceDefinitions = KindOf[*definition](apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	// LabelledPods lists pods by selectors quickly.
	LabelledPods = Pods.By(ByLabel)
)
