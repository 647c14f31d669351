package kinds

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/admissionregistration"
	"github.com/setpoint-io/setpoint/apiserver/kinds/apiextensions"
	"github.com/setpoint-io/setpoint/apiserver/kinds/apiregistration"
	"github.com/setpoint-io/setpoint/apiserver/kinds/apps"
	"github.com/setpoint-io/setpoint/apiserver/kinds/autoscaling"
	"github.com/setpoint-io/setpoint/apiserver/kinds/batch"
	"github.com/setpoint-io/setpoint/apiserver/kinds/certificates"
	"github.com/setpoint-io/setpoint/apiserver/kinds/coordination"
	"github.com/setpoint-io/setpoint/apiserver/kinds/core"
	"github.com/setpoint-io/setpoint/apiserver/kinds/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds/events"
	"github.com/setpoint-io/setpoint/apiserver/kinds/flowcontrol"
	"github.com/setpoint-io/setpoint/apiserver/kinds/networking"
	"github.com/setpoint-io/setpoint/apiserver/kinds/node"
	"github.com/setpoint-io/setpoint/apiserver/kinds/policy"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rbac"
	"github.com/setpoint-io/setpoint/apiserver/kinds/resourceapi"
	"github.com/setpoint-io/setpoint/apiserver/kinds/scheduling"
	"github.com/setpoint-io/setpoint/apiserver/kinds/storage"
	"github.com/setpoint-io/setpoint/apiserver/kinds/storagemigration"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// A group is a published group of types and the kinds of it that are served.
type group struct {
	addTypes func(*runtime.Scheme) error
	kinds    func() []*resource.Any
}

// groups are the API groups in the order in which discovery lists them.
func groups() []group {
	return []group{
		{corev1.AddToScheme, core.Kinds},
		{apiregistrationv1.AddToScheme, apiregistration.Kinds},
		{eventsv1.AddToScheme, events.Kinds},
		{appsv1.AddToScheme, apps.Kinds},
		{autoscalingv2.AddToScheme, autoscaling.Kinds},
		{batchv1.AddToScheme, batch.Kinds},
		{policyv1.AddToScheme, policy.Kinds},
		{discoveryv1.AddToScheme, discovery.Kinds},
		{certificatesv1.AddToScheme, certificates.Kinds},
		{networkingv1.AddToScheme, networking.Kinds},
		{rbacv1.AddToScheme, rbac.Kinds},
		{storagev1.AddToScheme, storage.Kinds},
		{admissionregistrationv1.AddToScheme, admissionregistration.Kinds},
		{schedulingv1.AddToScheme, scheduling.Kinds},
		{coordinationv1.AddToScheme, coordination.Kinds},
		{nodev1.AddToScheme, node.Kinds},
		{resourcev1.AddToScheme, resourceapi.Kinds},
		{flowcontrolv1.AddToScheme, flowcontrol.Kinds},
		{storagemigrationv1.AddToScheme, storagemigration.Kinds},
		{apiextensionsv1.AddToScheme, apiextensions.Kinds},
	}
}

// All returns the kinds in the order in which discovery lists them. The result
// is the caller's; the kinds themselves are shared by nobody.
func All() []*resource.Any {
	var all []*resource.Any
	for _, g := range groups() {
		all = append(all, g.kinds()...)
	}
	return all
}
