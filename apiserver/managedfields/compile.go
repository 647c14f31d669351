package managedfields

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// compiler makes the nodes of a kind from its Go type and its schema, walked
// together. Types may contain themselves.
type compiler struct {
	schema *schema.Schema
	nodes  map[nodeKey]*node
}

type nodeKey struct {
	goType   reflect.Type
	named    string
	inlined  schema.Atom
	related  schema.ElementRelationship
	identity bool
	fixed    bool
}

// unowned are the fields that nobody owns; upstream takes them off every set. The
// path "" stands for the object itself.
var unowned = map[string][]string{
	"": {"apiVersion", "kind"},
	"metadata": {
		"name",
		"namespace",
		"creationTimestamp",
		"selfLink",
		"uid",
		"clusterName",
		"generation",
		"managedFields",
		"resourceVersion",
	},
}

// compileObject compiles the type of pointers to whole objects, without what nobody owns.
func (c *compiler) compileObject(t reflect.Type, ref schema.TypeRef) *node {
	root := *c.compile(t.Elem(), ref, nodeKey{fixed: true})
	root.fields = without(root.fields, unowned[""])
	for i, f := range root.fields {
		if f.entry.JsonName == "metadata" {
			metadata := *f.node
			metadata.fields = without(metadata.fields, unowned["metadata"])
			root.fields[i].node = &metadata
		}
	}
	return &root
}

func without(fields []fieldNode, names []string) []fieldNode {
	return slices.DeleteFunc(slices.Clone(fields), func(f fieldNode) bool { return slices.Contains(names, f.entry.JsonName) })
}

// compile returns the node of values of a type. key carries identity and fixed.
func (c *compiler) compile(t reflect.Type, ref schema.TypeRef, key nodeKey) *node {
	key.goType, key.inlined = t, ref.Inlined
	if ref.NamedType != nil {
		key.named = *ref.NamedType
	}
	if ref.ElementRelationship != nil {
		key.related = *ref.ElementRelationship
	}
	if n, known := c.nodes[key]; known {
		return n
	}
	n := &node{identity: key.identity, fixed: key.fixed}
	c.nodes[key] = n
	if t.Kind() == reflect.Pointer {
		t, n.fixed = t.Elem(), false
	}
	resolved, found := c.schema.Resolve(ref)
	if !found {
		return n
	}
	if form, converted := convertedForm(key.goType); converted {
		if resolved.Scalar != nil && !key.identity {
			n.form = form
		}
		return n
	}
	c.fill(n, t, resolved)
	return n
}

var convertedForms = map[reflect.Type]form{
	reflect.TypeFor[metav1.Time]():        moment,
	reflect.TypeFor[metav1.MicroTime]():   microMoment,
	reflect.TypeFor[resource.Quantity]():  quantity,
	reflect.TypeFor[intstr.IntOrString](): intOrString,
}

// convertedForm tells types that have a JSON form of their own.
func convertedForm(t reflect.Type) (f form, converted bool) {
	if !value.TypeReflectEntryOf(t).CanConvertToUnstructured() {
		return opaque, false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return convertedForms[t], true // opaque if it is none of them
}

func (c *compiler) fill(n *node, t reflect.Type, resolved schema.Atom) {
	switch t.Kind() {
	case reflect.Struct:
		c.fillRecord(n, t, resolved.Map)
	case reflect.Map:
		c.fillDict(n, t, resolved.Map)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			n.fillLeaf(resolved.Scalar)
		} else {
			c.fillList(n, t, resolved.List)
		}
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		n.fillLeaf(resolved.Scalar)
	}
}

func (n *node) fillLeaf(scalar *schema.Scalar) {
	if scalar != nil {
		n.form = leaf
	}
}

func (c *compiler) fillRecord(n *node, t reflect.Type, m *schema.Map) {
	switch {
	case m == nil || n.identity:
	case m.ElementRelationship == schema.Atomic:
		n.form = atom
	default:
		n.form = record
		n.fields = c.fields(t, m, nodeKey{fixed: n.fixed}, nil)
	}
}

// fields compiles the fields of a struct in the order of their names, or some of them.
func (c *compiler) fields(t reflect.Type, m *schema.Map, key nodeKey, only []string) []fieldNode {
	var fields []fieldNode
	for _, entry := range value.TypeReflectEntryOf(t).OrderedFields() {
		if only != nil && !slices.Contains(only, entry.JsonName) {
			continue
		}
		ref := m.ElementType
		if f, named := m.FindField(entry.JsonName); named {
			ref = f.Type
		}
		fieldType := entry.GetFrom(reflect.New(t).Elem()).Type()
		fields = append(fields, fieldNode{entry, c.compile(fieldType, ref, key)})
	}
	return fields
}

func (c *compiler) fillDict(n *node, t reflect.Type, m *schema.Map) {
	switch {
	case m == nil || len(m.Fields) > 0 || t.Key().Kind() != reflect.String || n.identity:
	case m.ElementRelationship == schema.Atomic:
		n.form = atom
	default:
		n.form = dict
		n.element = c.compile(t.Elem(), m.ElementType, nodeKey{})
	}
}

func (c *compiler) fillList(n *node, t reflect.Type, l *schema.List) {
	switch {
	case l == nil || n.identity:
	case l.ElementRelationship == schema.Atomic:
		n.form = atom
	case l.ElementRelationship == schema.Associative && len(l.Keys) > 0:
		c.fillKeyed(n, t.Elem(), l)
	case l.ElementRelationship == schema.Associative:
		n.form = list
		n.element = c.compile(t.Elem(), l.ElementType, nodeKey{identity: true})
	}
}

// fillKeyed compiles a list whose items are told apart by some of their fields.
func (c *compiler) fillKeyed(n *node, item reflect.Type, l *schema.List) {
	resolved, found := c.schema.Resolve(l.ElementType)
	n.element = c.compile(item, l.ElementType, nodeKey{})
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	if !found || resolved.Map == nil || item.Kind() != reflect.Struct {
		return
	}
	if n.fields = c.fields(item, resolved.Map, nodeKey{identity: true}, l.Keys); len(n.fields) == len(l.Keys) {
		n.form = list
	}
}
