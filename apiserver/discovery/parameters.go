package discovery

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
)

var (
	parameterNamespace = parameter{
		"namespace",
		"string",
		"object name and auth scope, such as for teams and projects",
		common.PathParameterKind,
		false,
	}
	parameterPath   = parameter{"path", "string", "path to the resource", common.PathParameterKind, false}
	parameterPretty = parameter{
		"pretty",
		"string",
		"If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).",
		common.QueryParameterKind,
		true,
	}
)

// Parameters of requests by what they do. kubectl looks for dryRun and fieldValidation
// here before it relies on them.
var (
	createQuery = queryOf(metav1.CreateOptions{})
	updateQuery = queryOf(metav1.UpdateOptions{})
	patchQuery  = queryOf(metav1.PatchOptions{})
	deleteQuery = queryOf(metav1.DeleteOptions{})
	readQuery   = queryOf(metav1.GetOptions{})
	listQuery   = queryOf(metav1.ListOptions{})
	// clearQuery selects what a deletion of many is about.
	clearQuery = append(slices.Clone(deleteQuery), queryOf(metav1.ListOptions{}, "watch", "allowWatchBookmarks")...)
)

func parameterName(kind string) parameter {
	return parameter{"name", "string", "name of the " + kind, common.PathParameterKind, false}
}

func parameterBody(optional bool) parameter {
	return parameter{"body", "", "", common.BodyParameterKind, optional}
}

// queryOf are the parameters in which options travel: their fields, but for structs.
func queryOf(options interface{ SwaggerDoc() map[string]string }, but ...string) []parameter {
	docs, goType := options.SwaggerDoc(), reflect.TypeOf(options)
	var query []parameter
	for field := range goType.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind := kindOfValue(field.Type)
		if name != "" && kind != "" && !slices.Contains(but, name) {
			query = append(query, parameter{name, kind, docs[name], common.QueryParameterKind, true})
		}
	}
	return query
}

// kindOfValue is what a single value of a field is in JSON; empty: nothing that fits into a query.
func kindOfValue(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return kindOfValue(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	default:
		return ""
	}
}
