package past

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// fieldsMax is how many fields of one change are told, valueRunesMax how much of a text.
	fieldsMax     = 100
	valueRunesMax = 1000
	// lastApplied repeats the object.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// hidden stands for a value of a Secret.
	hidden = "***"
)

// Field is one field that differs. Before and After are as in JSON, nil where the field was not.
type Field struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// listKeys are the fields by which elements of lists are told apart, the first that all of them have and that tells them apart.
var listKeys = []string{"name", "type", "key", "containerPort", "port", "uid", "ip", "topologyKey"}

// differences are the fields in which two states of an object differ; more counts those beyond fieldsMax.
func differences(o explain.Object, before, after resource.Object) (fields []Field, more int) {
	d := &comparison{secret: o.Resource == "secrets" && o.Group == ""}
	d.maps("", plainOf(before), plainOf(after))
	return d.fields, d.more
}

// plainOf is an object as in JSON, without what every change changes.
func plainOf(o resource.Object) map[string]any {
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	if metadata, ok := plain["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, lastApplied)
			metadata["annotations"] = annotations
		}
		plain = maps.Clone(plain)
		plain["metadata"] = metadata
	}
	return plain
}

// comparison collects what differs.
type comparison struct {
	fields []Field
	more   int
	secret bool
}

func (d *comparison) any(path string, before, after any) {
	beforeMap, isMap := before.(map[string]any)
	afterMap, areMaps := after.(map[string]any)
	beforeList, isList := before.([]any)
	afterList, areLists := after.([]any)
	switch {
	case reflect.DeepEqual(before, after):
	case len(beforeMap)+len(beforeList)+len(afterMap)+len(afterList) == 0: // nothing is not the same as an empty map or list
		d.found(path, before, after)
	case isMap && areMaps, isMap && after == nil, before == nil && areMaps:
		d.maps(path, beforeMap, afterMap)
	case isList && areLists, isList && after == nil, before == nil && areLists:
		d.lists(path, beforeList, afterList)
	default:
		d.found(path, before, after)
	}
}

func (d *comparison) found(path string, before, after any) {
	if len(d.fields) == fieldsMax {
		d.more++
		return
	}
	if d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")) {
		before, after = masked(before, " (before)"), masked(after, " (after)")
	}
	d.fields = append(d.fields, Field{cutText(path), clipped(before), clipped(after)})
}

// masked is what kubectl diff shows of a Secret's value.
func masked(value any, which string) any {
	if value == nil {
		return nil
	}
	return hidden + which
}

// clipped is a value, or the beginning of its text.
func clipped(value any) any {
	switch v := value.(type) {
	case string:
		return cutText(v)
	case map[string]any, []any:
		if text, err := json.Marshal(v); err != nil || len(text) > valueRunesMax {
			return cutText(string(text))
		}
	}
	return value
}

func cutText(text string) string {
	if utf8.RuneCountInString(text) <= valueRunesMax {
		return text
	}
	return string([]rune(text)[:valueRunesMax]) + "…"
}

func (d *comparison) maps(path string, before, after map[string]any) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, known := before[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.any(join(path, name), before[name], after[name])
	}
}

// join is a path with a name behind it, quoted if it would not be one.
func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, `.[]"/ `):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

// lists compares elements by what names them, or by their places.
func (d *comparison) lists(path string, before, after []any) {
	for _, key := range listKeys {
		was, named := byKey(before, key)
		is, areNamed := byKey(after, key)
		if !named || !areNamed {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(merged(was, is))) {
			d.any(fmt.Sprintf("%s[%s=%s]", path, key, name), was[name], is[name])
		}
		d.order(path, key, common(before, key, is), common(after, key, was))
		return
	}
	for i := range max(len(before), len(after)) {
		d.any(fmt.Sprintf("%s[%d]", path, i), at(before, i), at(after, i))
	}
}

// order tells of the names that are in both if their order differs: of rules and environments it counts.
func (d *comparison) order(path, key string, before, after []any) {
	if !reflect.DeepEqual(before, after) {
		d.found(path+"[]."+key, before, after)
	}
}

// common are the names in a list that are also elsewhere.
func common(list []any, key string, elsewhere map[string]any) (names []any) {
	for _, element := range list {
		name := fmt.Sprint(element.(map[string]any)[key]) // byKey has seen that it is one
		if _, found := elsewhere[name]; found {
			names = append(names, name)
		}
	}
	return names
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// byKey are the elements of a list by one of their fields; false: it does not tell them apart.
func byKey(list []any, key string) (map[string]any, bool) {
	named := make(map[string]any, len(list))
	for _, element := range list {
		m, ok := element.(map[string]any)
		if !ok || m[key] == nil {
			return nil, false
		}
		named[fmt.Sprint(m[key])] = element
	}
	return named, len(named) == len(list)
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
