// Package dump writes OpenAPI definitions as compressed JSON.
//
// It is the second half of openapigen: the program that openapigen generates and
// runs calls Write with the definitions compiled into it. It owns the list of group
// versions that have models; openapigen reads the package paths of it. It is used
// by `go generate` alone and tested through the models it wrote (apiserver/discovery).
package dump

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// groupVersion is one group version with models.
type groupVersion struct {
	// path is the import path, below k8s.io/api if it has no domain.
	path string
	gv   schema.GroupVersion
	add  func(*runtime.Scheme) error
}

// groupVersions is the list: a further one is a line here and a `go generate`.
var groupVersions = []groupVersion{
	{"core/v1", corev1.SchemeGroupVersion, corev1.AddToScheme},
	{"admissionregistration/v1", admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme},
	{"apps/v1", appsv1.SchemeGroupVersion, appsv1.AddToScheme},
	{"authentication/v1", authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme},
	{"authorization/v1", authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme},
	{"autoscaling/v1", autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme},
	{"autoscaling/v2", autoscalingv2.SchemeGroupVersion, autoscalingv2.AddToScheme},
	{"batch/v1", batchv1.SchemeGroupVersion, batchv1.AddToScheme},
	{"certificates/v1", certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme},
	{"coordination/v1", coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme},
	{"discovery/v1", discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme},
	{"events/v1", eventsv1.SchemeGroupVersion, eventsv1.AddToScheme},
	{"flowcontrol/v1", flowcontrolv1.SchemeGroupVersion, flowcontrolv1.AddToScheme},
	{"networking/v1", networkingv1.SchemeGroupVersion, networkingv1.AddToScheme},
	{"node/v1", nodev1.SchemeGroupVersion, nodev1.AddToScheme},
	{"policy/v1", policyv1.SchemeGroupVersion, policyv1.AddToScheme},
	{"rbac/v1", rbacv1.SchemeGroupVersion, rbacv1.AddToScheme},
	{"resource/v1", resourcev1.SchemeGroupVersion, resourcev1.AddToScheme},
	{"scheduling/v1", schedulingv1.SchemeGroupVersion, schedulingv1.AddToScheme},
	// Jobs refer to it.
	{"scheduling/v1alpha3", schedulingv1alpha3.SchemeGroupVersion, schedulingv1alpha3.AddToScheme},
	{"storage/v1", storagev1.SchemeGroupVersion, storagev1.AddToScheme},
	{"storagemigration/v1", storagemigrationv1.SchemeGroupVersion, storagemigrationv1.AddToScheme},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", apiextensionsv1.SchemeGroupVersion, apiextensionsv1.AddToScheme},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1", apiregistrationv1.SchemeGroupVersion, apiregistrationv1.AddToScheme},
	{"k8s.io/metrics/pkg/apis/metrics/v1beta1", metricsv1beta1.SchemeGroupVersion, metricsv1beta1.AddToScheme},
}

func (g groupVersion) importPath() string {
	if first, _, _ := strings.Cut(g.path, "/"); strings.Contains(first, ".") {
		return g.path
	}
	return "k8s.io/api/" + g.path
}

// Packages are the Go packages from which definitions are generated.
func Packages() []string {
	packages := []string{
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime",
		"k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/version",
	}
	for _, group := range groupVersions {
		packages = append(packages, group.importPath())
	}
	return packages
}

// Write writes the schemas of the definitions to a file: gzip over one JSON object, model
// name to schema, the same bytes for the same input.
func Write(path string, definitions func(common.ReferenceCallback) map[string]common.OpenAPIDefinition) error {
	kinds, err := kindsOfModels()
	if err != nil {
		return err
	}
	models := map[string]spec.Schema{}
	for name, definition := range definitions(reference) {
		model := definition.Schema
		if gvk, ok := kinds[name]; ok {
			model.AddExtension("x-kubernetes-group-version-kind", []any{
				map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
			})
		}
		models[name] = model
	}
	compressed, err := compress(models)
	if err != nil {
		return err
	}
	return os.WriteFile(path, compressed, 0o644)
}

func reference(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }

// kindsOfModels says which model is which top-level kind. Kinds that every group shares
// (options, Status, WatchEvent) have no kind here.
func kindsOfModels() (map[string]schema.GroupVersionKind, error) {
	scheme := runtime.NewScheme()
	kinds := map[string]schema.GroupVersionKind{}
	for _, group := range groupVersions {
		if err := group.add(scheme); err != nil {
			return nil, fmt.Errorf("scheme of %s: %w", group.path, err)
		}
		for kind, goType := range scheme.KnownTypes(group.gv) {
			named, ok := reflect.New(goType).Elem().Interface().(interface{ OpenAPIModelName() string })
			if ok && goType.PkgPath() == group.importPath() {
				kinds[named.OpenAPIModelName()] = group.gv.WithKind(kind)
			}
		}
	}
	return kinds, nil
}

func compress(models map[string]spec.Schema) ([]byte, error) {
	text, err := json.Marshal(models)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
