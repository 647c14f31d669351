package resourceapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func deviceClasses() resource.Kind[*resourcev1.DeviceClass] {
	return resource.Kind[*resourcev1.DeviceClass]{
		GroupVersionKind: resourcev1.SchemeGroupVersion.WithKind("DeviceClass"),
		Plural:           "deviceclasses",
		ReturnDeleted:    true,
		ClusterScoped:    true,
		New:              func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} },
		NewList:          func() runtime.Object { return &resourcev1.DeviceClassList{} },
		Validate: func(class *resourcev1.DeviceClass) field.ErrorList {
			return validateClass(class, &resourcev1.DeviceClass{})
		},
		ValidateUpdate: validateClass,
		Spec:           func(class *resourcev1.DeviceClass) any { return &class.Spec },
		Generation:     true,
		Columns: []resource.Column[*resourcev1.DeviceClass]{
			column.Name[*resourcev1.DeviceClass](),
			column.Age[*resourcev1.DeviceClass](),
		},
	}
}

// validateClass judges anew only what changed; old is empty for a new class.
func validateClass(class, old *resourcev1.DeviceClass) field.ErrorList {
	spec, path := &class.Spec, field.NewPath("spec")
	errs := validateSelectors(spec.Selectors, equality.Semantic.DeepEqual(spec.Selectors, old.Spec.Selectors), path.Child("selectors"))
	stored := equality.Semantic.DeepEqual(spec.Config, old.Spec.Config)
	errs = append(
		errs,
		validateEach(
			spec.Config,
			resourcev1.DeviceConfigMaxSize,
			func(config resourcev1.DeviceClassConfiguration, at *field.Path) field.ErrorList {
				return validateConfig(&config.DeviceConfiguration, stored, at)
			},
			path.Child("config"),
		)...)
	if name := spec.ExtendedResourceName; name != nil && !isExtended(*name) {
		errs = append(errs, field.Invalid(path.Child("extendedResourceName"), *name, "must be a valid extended resource name"))
	}
	return errs
}

// isExtended: a name in a domain that is not Kubernetes' own, and also with the
// prefix of quotas a good name.
func isExtended(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(utilvalidation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}
