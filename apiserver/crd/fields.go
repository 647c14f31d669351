package crd

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/jsonpath"
)

// selectableFields yields the values by which a field selector may select; nil if a
// version has none. A field that is not set is "".
func selectableFields(selectable []apiextensionsv1.SelectableField) func(u *unstructured.Unstructured) fields.Set {
	if len(selectable) == 0 {
		return nil
	}
	paths := make(map[string]*jsonpath.JSONPath, len(selectable))
	for _, s := range selectable {
		path := jsonpath.New("selectableField").AllowMissingKeys(true)
		if err := path.Parse("{" + s.JSONPath + "}"); err != nil {
			continue // validation of the definition refuses it
		}
		paths[strings.TrimPrefix(s.JSONPath, ".")] = path
	}
	return func(u *unstructured.Unstructured) fields.Set {
		set := make(fields.Set, len(paths))
		for name, path := range paths {
			set[name] = valueAt(path, u.Object)
		}
		return set
	}
}

func valueAt(path *jsonpath.JSONPath, object map[string]any) string {
	results, err := path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return ""
	}
	value := results[0][0].Interface()
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
