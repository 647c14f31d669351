package discovery

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// operation is one request that the API understands, described once for OpenAPI v2 and v3.
type operation struct {
	path, method string
	// id is unique; client generators make function names of it.
	id, description string
	// action is Kubernetes' word for the operation: list, post, get, put, patch, delete, deletecollection, connect.
	action string
	gvk    schema.GroupVersionKind
	// pathParameters and query are parameters in these places.
	pathParameters, query []parameter
	// body and response are model names; "" is none, and a plain text.
	body, response string
	// custom is of a kind without a Go type: no strategic merge, no protobuf.
	custom bool
}

// kindOperations lists the operations of kinds of one group version. names yields the model of a kind.
type kindOperations struct {
	names map[schema.GroupVersionKind]string
	list  []operation
}

// modelName is the name under which Models knows a type.
func modelName(obj runtime.Object) string {
	if _, custom := obj.(runtime.Unstructured); custom {
		return customModelName(obj.GetObjectKind().GroupVersionKind())
	}
	if named, ok := obj.(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return ""
}

func (o *kindOperations) add(kind *resource.Any) {
	path := pathOf(kind.GroupVersionKind.GroupVersion())
	_, custom := kind.New().(runtime.Unstructured)
	base := operation{gvk: kind.GroupVersionKind, custom: custom}
	if kind.Namespaced() && !kind.CreateOnly {
		all := base
		all.path = path + "/" + kind.Plural
		o.addList(kind, all, idOf("list", kind, false)+"ForAllNamespaces")
	}
	if kind.Namespaced() {
		path += "/namespaces/{namespace}"
		base.pathParameters = append(base.pathParameters, parameterNamespace)
	}
	base.path = path + "/" + kind.Plural
	if kind.CreateOnly {
		o.addCreate(kind, base)
		return
	}
	if kind.ReadOnly {
		o.addRead(kind, base)
		return
	}
	o.addCollection(kind, base)
	base.path += "/{name}"
	base.pathParameters = append(slices.Clone(base.pathParameters), parameterName)
	o.addItem(kind, base)
	for _, sub := range subresourcesOf(kind) {
		o.addSubresource(kind, sub, base)
	}
}

func (o *kindOperations) addList(kind *resource.Any, base operation, id string) {
	base.method, base.action, base.id = "get", "list", id
	base.description = "list or watch objects of kind " + kind.GroupVersionKind.Kind
	base.query, base.response = listQuery, modelName(kind.NewList())
	o.list = append(o.list, base)
}

func (o *kindOperations) addCollection(kind *resource.Any, base operation) {
	name := kind.GroupVersionKind.Kind
	o.addList(kind, base, idOf("list", kind, true))
	o.addCreate(kind, base)
	if kind.OneByOne {
		return
	}
	clearing := base
	clearing.method, clearing.action, clearing.id = "delete", "deletecollection", idOfCollection(kind)
	clearing.description = "delete a collection of objects of kind " + name
	clearing.query = append(slices.Clone(deleteQuery), listQuery...)
	clearing.body, clearing.response = metav1.DeleteOptions{}.OpenAPIModelName(), metav1.Status{}.OpenAPIModelName()
	o.list = append(o.list, clearing)
}

// addRead is for kinds that nobody writes.
func (o *kindOperations) addRead(kind *resource.Any, base operation) {
	o.addList(kind, base, idOf("list", kind, true))
	base.path += "/{name}"
	base.pathParameters = append(slices.Clone(base.pathParameters), parameterName)
	base.response = modelName(kind.New())
	o.addReadWrite(kind, "", []string{"get"}, base, base.response)
}

func (o *kindOperations) addCreate(kind *resource.Any, post operation) {
	post.method, post.action, post.id = "post", "post", idOf("create", kind, true)
	post.description = "create an object of kind " + kind.GroupVersionKind.Kind
	post.query, post.body, post.response = writeQuery, modelName(kind.New()), modelName(kind.New())
	o.list = append(o.list, post)
}

func (o *kindOperations) addItem(kind *resource.Any, base operation) {
	base.response = modelName(kind.New())
	o.addReadWrite(kind, "", []string{"get", "update", "patch"}, base, modelName(kind.New()))
	base.method, base.action, base.id = "delete", "delete", idOf("delete", kind, true)
	base.description = "delete an object of kind " + kind.GroupVersionKind.Kind
	base.query, base.body, base.response = deleteQuery, metav1.DeleteOptions{}.OpenAPIModelName(), metav1.Status{}.OpenAPIModelName()
	o.list = append(o.list, base)
}

func (o *kindOperations) addSubresource(kind *resource.Any, sub resource.Subresource, base operation) {
	base.path += "/" + sub.Name
	base.gvk = sub.Kind
	suffix := strings.ToUpper(sub.Name[:1]) + sub.Name[1:]
	if strings.HasSuffix(sub.Kind.Kind, "Options") {
		o.addConnect(kind, suffix, base)
		return
	}
	model := o.names[sub.Kind]
	if sub.Name != "log" { // a log is text
		base.response = model
	}
	o.addReadWrite(kind, suffix, sub.Verbs, base, model)
}

// methodOf says how a verb travels and how it is called in operation ids.
var methodOf = map[string]struct{ method, id, words string }{
	"get":    {"get", "read", "read "},
	"create": {"post", "create", "create "},
	"update": {"put", "replace", "replace "},
	"patch":  {"patch", "patch", "change "},
}

func (o *kindOperations) addReadWrite(kind *resource.Any, suffix string, verbs []string, base operation, model string) {
	for _, verb := range verbs {
		how, ok := methodOf[verb]
		if !ok {
			continue
		}
		op := base
		op.method, op.action, op.id = how.method, how.method, idOf(how.id, kind, true)+suffix
		op.description = strings.TrimSpace(how.words + strings.ToLower(suffix) + " of an object of kind " + kind.GroupVersionKind.Kind)
		if suffix == "" {
			op.description = how.words + "an object of kind " + kind.GroupVersionKind.Kind
		}
		switch verb {
		case "create", "update":
			op.query, op.body = writeQuery, model
		case "patch":
			op.query, op.body = patchQuery, metav1.Patch{}.OpenAPIModelName()
		}
		o.list = append(o.list, op)
	}
}

// addConnect describes a stream (exec, attach, port-forward), which is opened by GET or POST.
func (o *kindOperations) addConnect(kind *resource.Any, suffix string, base operation) {
	for _, method := range []string{"get", "post"} {
		op := base
		op.method, op.action = method, "connect"
		op.id = idOf("connect", kind, true)
		op.id = strings.Replace(op.id, idGroup(kind), idGroup(kind)+strings.ToUpper(method[:1])+method[1:], 1) + suffix
		op.description = "connect to " + strings.ToLower(suffix) + " of a " + kind.GroupVersionKind.Kind
		o.list = append(o.list, op)
	}
}

// idOf is upstream's form of operation ids, as in "readAppsV1NamespacedDeployment".
func idOf(verb string, kind *resource.Any, scoped bool) string {
	id := verb + idGroup(kind)
	if scoped && kind.Namespaced() {
		id += "Namespaced"
	}
	return id + kind.GroupVersionKind.Kind
}

func idOfCollection(kind *resource.Any) string {
	return strings.Replace(idOf("delete", kind, true), idGroup(kind), idGroup(kind)+"Collection", 1)
}

func idGroup(kind *resource.Any) string {
	group := shortGroup(kind.GroupVersionKind.Group)
	if kind.Schema != nil { // the first name of a custom group need not be unique
		group = kind.GroupVersionKind.Group
		for dot := strings.IndexByte(group, '.'); dot >= 0; dot = strings.IndexByte(group, '.') {
			group = group[:dot] + strings.ToUpper(group[dot+1:dot+2]) + group[dot+2:]
		}
	}
	return strings.ToUpper(group[:1]) + group[1:] + strings.ToUpper(kind.GroupVersionKind.Version[:1]) + kind.GroupVersionKind.Version[1:]
}

func shortGroup(group string) string {
	if group == "" {
		return "core"
	}
	short, _, _ := strings.Cut(group, ".")
	return short
}

// tagOf groups operations in documentation: "apps_v1".
func tagOf(op operation) string {
	parts := strings.Split(op.path, "/")
	if parts[1] == "api" {
		return "core_" + parts[2]
	}
	return shortGroup(parts[2]) + "_" + parts[3]
}
