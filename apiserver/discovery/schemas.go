package discovery

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	referenceV3 = "#/components/schemas/"
	referenceV2 = "#/definitions/"

	extensionKind   = "x-kubernetes-group-version-kind"
	extensionAction = "x-kubernetes-action"
	// extensionSelectable names the fields by which objects of a custom kind can be selected.
	extensionSelectable = "x-kubernetes-selectable-fields"
	// extensionV2 holds what a v3 schema that v2 cannot express is in v2.
	extensionV2 = "x-kubernetes-v2-schema"
)

// How clients show who they are, as both documents say it.
const (
	securityName        = "BearerToken"
	securityDescription = "Bearer Token authentication"
)

// infoOf names the version of the API: generated clients are called after it.
func infoOf() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: kubernetesMajor + "." + kubernetesMinor}}
}

// routesOf lists the routes of a group version; models tells the models of subresources' kinds.
func routesOf(gv schema.GroupVersion, v *groupVersion, models map[string]*spec.Schema) routes {
	var all routes
	if v.builtIn() {
		all = append(all, resourcesRoute(gv))
	}
	names := namesOfKinds(models)
	for _, kind := range v.kinds {
		all = append(all, routesOfKind(kind, names)...)
	}
	return all
}

// shareKinds says which kinds the models are that all groups share: some of each group
// version, others of none.
func shareKinds(models map[string]*spec.Schema, versions []schema.GroupVersion) {
	tell := func(name, kind string, versions ...schema.GroupVersion) {
		list := []any{kindExtension(metav1.Unversioned.WithKind(kind))}
		for _, gv := range versions {
			if gv != metav1.Unversioned {
				list = append(list, kindExtension(gv.WithKind(kind)))
			}
		}
		models[name].AddExtension(extensionKind, list)
	}
	tell(metav1.WatchEvent{}.OpenAPIModelName(), "WatchEvent", versions...)
	tell(metav1.DeleteOptions{}.OpenAPIModelName(), "DeleteOptions", versions...)
	tell(metav1.Status{}.OpenAPIModelName(), "Status")
	tell(metav1.APIVersions{}.OpenAPIModelName(), "APIVersions")
	tell(metav1.APIGroupList{}.OpenAPIModelName(), "APIGroupList")
	tell(metav1.APIGroup{}.OpenAPIModelName(), "APIGroup")
	tell(metav1.APIResourceList{}.OpenAPIModelName(), "APIResourceList")
}

// versionsOf are the group versions of built-in kinds.
func versionsOf(kinds []*resource.Any) []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, kind := range kinds {
		if kind.Schema == nil {
			versions = append(versions, kind.GroupVersionKind.GroupVersion())
		}
	}
	slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(versions)
}

func namesOfKinds(models map[string]*spec.Schema) map[schema.GroupVersionKind]string {
	names := map[schema.GroupVersionKind]string{}
	for name, model := range models {
		list, _ := model.Extensions[extensionKind].([]any)
		for _, entry := range list {
			if gvk, ok := entry.(map[string]any); ok {
				group, _ := gvk["group"].(string)
				version, _ := gvk["version"].(string)
				kind, _ := gvk["kind"].(string)
				names[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}] = name
			}
		}
	}
	return names
}

// reachable returns the models that routes use, directly or through others.
func reachable(all routes, models map[string]*spec.Schema) map[string]*spec.Schema {
	found := map[string]*spec.Schema{}
	var visit func(name string)
	visit = func(name string) {
		model, ok := models[name]
		if !ok || found[name] != nil {
			return
		}
		found[name] = model
		walker := schemamutation.Walker{
			SchemaCallback: schemamutation.SchemaCallBackNoop,
			RefCallback: func(ref *spec.Ref) *spec.Ref {
				visit(strings.TrimPrefix(ref.String(), referenceV3))
				return ref
			},
		}
		walker.WalkSchema(model)
	}
	for _, route := range all {
		for _, m := range route.models() {
			visit(string(m))
		}
	}
	return found
}

func kindExtension(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}
