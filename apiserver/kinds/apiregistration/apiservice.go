package apiregistration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Limits of the order in which clients see groups and versions.
const (
	groupPriorityMax   = 20000
	versionPriorityMax = 1000
	defaultServicePort = 443
)

// statuses in the order of messages.
var statuses = []apiregistrationv1.ConditionStatus{
	apiregistrationv1.ConditionTrue,
	apiregistrationv1.ConditionFalse,
	apiregistrationv1.ConditionUnknown,
}

func apiServices() resource.Kind[*apiregistrationv1.APIService] {
	return resource.Kind[*apiregistrationv1.APIService]{
		GroupVersionKind: apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
		Plural:           "apiservices",
		Categories:       []string{"api-extensions"},
		ClusterScoped:    true,
		New:              func() *apiregistrationv1.APIService { return &apiregistrationv1.APIService{} },
		NewList:          func() runtime.Object { return &apiregistrationv1.APIServiceList{} },
		// The name is made of the spec, so Validate judges it.
		ValidateName:           func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
		Default:                defaultAPIService,
		PrepareCreate:          prepareAPIService,
		StatusResets:           []string{"metadata", "spec"},
		PrepareStatus:          func(service, old *apiregistrationv1.APIService) { metav1.ResetObjectMetaForStatus(service, old) },
		Validate:               validateAPIService,
		ValidateUpdate:         func(service, _ *apiregistrationv1.APIService) field.ErrorList { return validateAPIService(service) },
		ValidateStatus:         func(service, _ *apiregistrationv1.APIService) field.ErrorList { return validateStatus(service) },
		Spec:                   func(service *apiregistrationv1.APIService) any { return &service.Spec },
		Status:                 func(service *apiregistrationv1.APIService) any { return &service.Status },
		RequireResourceVersion: true,
		Columns:                apiServiceColumns(),
	}
}

func defaultAPIService(service *apiregistrationv1.APIService) {
	if service.Spec.Service != nil {
		rule.DefaultPointer(&service.Spec.Service.Port, defaultServicePort)
	}
}

// prepareAPIService: what this server answers for itself is available from the start.
func prepareAPIService(service *apiregistrationv1.APIService) {
	if service.Spec.Service == nil {
		service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{
			Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, LastTransitionTime: service.CreationTimestamp,
			Reason: "Local", Message: "Local APIServices are always available",
		}}
	}
}

func apiServiceColumns() []resource.Column[*apiregistrationv1.APIService] {
	return []resource.Column[*apiregistrationv1.APIService]{
		column.Name[*apiregistrationv1.APIService](),
		column.Text(
			"Service",
			"The reference to the service that hosts this API endpoint.",
			0,
			func(service *apiregistrationv1.APIService) string {
				if reference := service.Spec.Service; reference != nil {
					return reference.Namespace + "/" + reference.Name
				}
				return "Local"
			},
		),
		column.Text("Available", "Whether this service is available.", 0, availableCell),
		column.Age[*apiregistrationv1.APIService](),
	}
}

func availableCell(service *apiregistrationv1.APIService) string {
	for _, condition := range service.Status.Conditions {
		switch {
		case condition.Type != apiregistrationv1.Available:
		case condition.Status == apiregistrationv1.ConditionTrue || condition.Reason == "":
			return string(condition.Status)
		default:
			return fmt.Sprintf("%s (%s)", condition.Status, condition.Reason)
		}
	}
	return string(apiregistrationv1.ConditionUnknown)
}

func validateAPIService(service *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	spec, path := &service.Spec, field.NewPath("spec")
	if name := spec.Version + "." + spec.Group; service.Name != name && len(content.IsPathSegmentName(service.Name)) == 0 {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("metadata", "name"),
				service.Name,
				fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", name),
			),
		)
	}
	if name := spec.Version + "." + spec.Group; service.GenerateName != "" && service.GenerateName != name {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("metadata", "generateName"),
				service.GenerateName,
				fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", name),
			),
		)
	}
	switch {
	case spec.Group != "":
		errs = append(errs, rule.Subdomain(spec.Group, path.Child("group"))...)
	case spec.Version != "v1":
		errs = append(errs, field.Required(path.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	errs = append(errs, rule.Invalid(spec.Version, utilvalidation.IsDNS1035Label(spec.Version), path.Child("version"))...)
	if n := spec.GroupPriorityMinimum; n <= 0 || n > groupPriorityMax {
		errs = append(errs, field.Invalid(path.Child("groupPriorityMinimum"), n, "must be positive and less than 20000"))
	}
	if n := spec.VersionPriority; n <= 0 || n > versionPriorityMax {
		errs = append(errs, field.Invalid(path.Child("versionPriority"), n, "must be positive and less than 1000"))
	}
	if spec.Service == nil {
		return append(errs, validateLocal(spec, path)...)
	}
	return append(errs, validateRemote(spec, path)...)
}

// validateLocal: nobody is called, so there is nobody to be trusted.
func validateLocal(spec *apiregistrationv1.APIServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(spec.CABundle); n > 0 {
		errs = append(errs, field.Invalid(path.Child("caBundle"), fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle"))
	}
	if spec.InsecureSkipTLSVerify {
		errs = append(
			errs,
			field.Invalid(path.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"),
		)
	}
	return errs
}

func validateRemote(spec *apiregistrationv1.APIServiceSpec, path *field.Path) field.ErrorList {
	at := path.Child("service")
	errs := rule.Required(spec.Service.Namespace, at.Child("namespace"))
	errs = append(errs, rule.Required(spec.Service.Name, at.Child("name"))...)
	port := int32(defaultServicePort)
	if spec.Service.Port != nil {
		port = *spec.Service.Port
	}
	if msgs := utilvalidation.IsValidPortNum(int(port)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(at.Child("port"), port, "port is not valid: "+strings.Join(msgs, ", ")))
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

func validateStatus(service *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range service.Status.Conditions {
		errs = append(errs, rule.OneOf(condition.Status, statuses, field.NewPath("status", "conditions").Index(i).Child("status"))...)
	}
	return errs
}
