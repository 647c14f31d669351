package apiservice

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Upstream's label for APIServices that are nobody's work, and its values.
const (
	managedLabel       = "kube-aggregator.kubernetes.io/automanaged"
	manageOnStart      = "onstart"
	manageContinuously = "true"
)

// Where clients see the groups of custom resources; upstream's numbers.
const (
	customGroupPriority   = 1000
	customVersionPriority = 100
)

// step is what has to be written to register a group version, or nothing.
type step struct {
	create, update *apiregistrationv1.APIService
	remove         bool
}

// metricsGroup is served here, but upstream leaves it to an add-on.
const metricsGroup = "metrics.k8s.io"

// replaced reports whether a user's server stands in for what is built in. To apply metrics-server's manifest to
// the APIService that is there keeps its label, so the label does not tell.
func replaced(have, wanted *apiregistrationv1.APIService) bool {
	return wanted != nil && wanted.Spec.Group == metricsGroup && have.Spec.Service != nil
}

// register leaves alone what a user made.
func register(have, wanted *apiregistrationv1.APIService) step {
	switch {
	case have == nil:
		return step{create: wanted}
	case have.DeletionTimestamp != nil || !managed(have) || replaced(have, wanted):
		return step{}
	case wanted == nil:
		return step{remove: true}
	case apiequality.Semantic.DeepEqual(have.Spec, wanted.Spec):
		return step{}
	}
	next := have.DeepCopy()
	wanted.Spec.DeepCopyInto(&next.Spec)
	return step{update: next}
}

func managed(s *apiregistrationv1.APIService) bool {
	how := s.Labels[managedLabel]
	return how == manageOnStart || how == manageContinuously
}

func labelled(s *apiregistrationv1.APIService, how string) *apiregistrationv1.APIService {
	next := s.DeepCopy()
	next.Labels = map[string]string{managedLabel: how}
	return next
}

// ofDefinition is the APIService with a name that a definition serves, or nil.
func ofDefinition(d *apiextensionsv1.CustomResourceDefinition, name string) *apiregistrationv1.APIService {
	for _, v := range d.Spec.Versions {
		if v.Served && v.Name+"."+d.Spec.Group == name {
			return &apiregistrationv1.APIService{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: apiregistrationv1.APIServiceSpec{
					Group: d.Spec.Group, Version: v.Name, GroupPriorityMinimum: customGroupPriority, VersionPriority: customVersionPriority,
				},
			}
		}
	}
	return nil
}

type condition = apiregistrationv1.APIServiceCondition

// failed is upstream's verdict in upstream's words.
func failed(status apiregistrationv1.ConditionStatus, reason, format string, args ...any) condition {
	return condition{Type: apiregistrationv1.Available, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// lookUp judges the Service and its endpoints; reachable tells that only the server
// itself can say more, and the verdict is what holds if it answers.
func (c *controller) lookUp(s *apiregistrationv1.APIService) (verdict condition, reachable bool) {
	to := s.Spec.Service
	service, err := c.services.Get(reconcile.Key{Namespace: to.Namespace, Name: to.Name})
	if apierrors.IsNotFound(err) {
		return failed(apiregistrationv1.ConditionFalse, "ServiceNotFound", "service/%s in %q is not present", to.Name, to.Namespace), false
	}
	if err != nil {
		return failed(
			apiregistrationv1.ConditionUnknown,
			"ServiceAccessError",
			"service/%s in %q cannot be checked due to: %v",
			to.Name,
			to.Namespace,
			err,
		), false
	}
	passed := condition{
		Type:    apiregistrationv1.Available,
		Status:  apiregistrationv1.ConditionTrue,
		Reason:  "Passed",
		Message: "all checks passed",
	}
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		return passed, true
	}
	ofService := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: to.Name})
	endpoints, err := c.slices.List(to.Namespace, ofService)
	if err != nil {
		return failed(
			apiregistrationv1.ConditionUnknown,
			"EndpointsAccessError",
			"service/%s in %q cannot be checked due to: %v",
			to.Name,
			to.Namespace,
			err,
		), false
	}
	if missing, found := judgeEndpoints(to, service, endpoints); found {
		return missing, false
	}
	return passed, true
}

// judgeEndpoints tells what a Service with an address of its own lacks, if anything.
func judgeEndpoints(
	to *apiregistrationv1.ServiceReference,
	service *corev1.Service,
	endpoints []*discoveryv1.EndpointSlice,
) (missing condition, found bool) {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *to.Port })
	if i < 0 {
		return failed(
			apiregistrationv1.ConditionFalse,
			"ServicePortError",
			"service/%s in %q is not listening on port %d",
			to.Name,
			to.Namespace,
			*to.Port,
		), true
	}
	if len(endpoints) == 0 {
		return failed(
			apiregistrationv1.ConditionFalse,
			"EndpointsNotFound",
			"cannot find endpointslices for service/%s in %q",
			to.Name,
			to.Namespace,
		), true
	}
	port := service.Spec.Ports[i].Name
	if !slices.ContainsFunc(endpoints, func(s *discoveryv1.EndpointSlice) bool { return serves(s, port) }) {
		return failed(
			apiregistrationv1.ConditionFalse,
			"MissingEndpoints",
			"endpointslices for service/%s in %q have no addresses with port name %q",
			to.Name,
			to.Namespace,
			port,
		), true
	}
	return missing, false
}

// serves reports whether anybody in the slice is ready behind a port.
func serves(s *discoveryv1.EndpointSlice, port string) bool {
	return slices.ContainsFunc(
		s.Endpoints,
		func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready },
	) &&
		slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return p.Name != nil && *p.Name == port && p.Port != nil })
}

// withCondition keeps the time of the last change of status.
func withCondition(s *apiregistrationv1.APIService, c condition, now metav1.Time) *apiregistrationv1.APIService {
	next := s.DeepCopy()
	c.LastTransitionTime = now
	helper.SetAPIServiceCondition(next, c)
	return next
}
