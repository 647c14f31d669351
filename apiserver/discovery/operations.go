package discovery

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Models of what is the same for all kinds.
var (
	modelStatus        = model(metav1.Status{}.OpenAPIModelName())
	modelPatch         = model(metav1.Patch{}.OpenAPIModelName())
	modelDeleteOptions = model(metav1.DeleteOptions{}.OpenAPIModelName())
	modelWatchEvent    = model(metav1.WatchEvent{}.OpenAPIModelName())
)

// queries are the parameters of subresources that are no object, by the kind of these.
var queries = map[string][]parameter{
	"PodAttachOptions":      queryOf(corev1.PodAttachOptions{}),
	"PodExecOptions":        queryOf(corev1.PodExecOptions{}),
	"PodPortForwardOptions": queryOf(corev1.PodPortForwardOptions{}),
	"PodProxyOptions":       queryOf(corev1.PodProxyOptions{}),
	"ServiceProxyOptions":   queryOf(corev1.ServiceProxyOptions{}),
	"NodeProxyOptions":      queryOf(corev1.NodeProxyOptions{}),
}

// logQuery are the parameters of a log.
var logQuery = queryOf(corev1.PodLogOptions{})

// kindRoutes lists the routes of a kind. names yields the model of a kind.
type kindRoutes struct {
	kind  *resource.Any
	names map[schema.GroupVersionKind]string
	// object is the model of one, list that of many.
	object, list model
	// custom kinds have no Go type: no strategic merge, no protobuf, no paths below /watch. Upstream describes their
	// operations with a builder of its own, which differs in parameters, answers and words.
	custom bool
	// scope is "Namespaced" in operations in a namespace.
	scope  string
	routes routes
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

// routesOfKind lists all routes of a kind.
func routesOfKind(kind *resource.Any, names map[schema.GroupVersionKind]string) routes {
	k := kindRoutes{kind: kind, names: names, object: model(modelName(kind.New())), list: model(modelName(kind.NewList()))}
	_, k.custom = kind.New().(runtime.Unstructured)
	root := pathOf(kind.GroupVersionKind.GroupVersion()) + "/"
	all, within := kind.Plural, kind.Plural
	var parameters []parameter
	if kind.Namespaced() {
		within, k.scope, parameters = "namespaces/{namespace}/"+within, "Namespaced", []parameter{parameterNamespace}
	}
	k.addCollection(root, within, parameters)
	if kind.CreateOnly {
		return k.routes
	}
	if kind.Namespaced() {
		k.addList(root+all, "list"+kind.GroupVersionKind.Kind+"ForAllNamespaces", nil)
		k.addWatch(root+"watch/"+all, "watch"+kind.GroupVersionKind.Kind+"ListForAllNamespaces", true, nil)
	}
	k.addItem(root, within+"/{name}", append(slices.Clone(parameters), parameterName(kind.GroupVersionKind.Kind)))
	for _, sub := range subresourcesOf(kind) {
		name := parameterName(sub.Kind.Kind)
		if k.custom {
			name = parameterName(kind.GroupVersionKind.Kind)
		}
		k.addSubresource(root+within+"/{name}/"+sub.Name, sub, append(slices.Clone(parameters), name))
	}
	return k.routes
}

// add completes a route that takes and gives objects.
func (k *kindRoutes) add(r route, more ...[]parameter) {
	if r.gvk.Kind == "" {
		r.gvk = k.kind.GroupVersionKind
	}
	r.parameters = slices.Concat(append([][]parameter{{parameterPretty}}, more...)...)
	if r.body != "" {
		r.parameters = append(r.parameters, parameterBody(r.method == http.MethodDelete))
	}
	if r.consumes == nil {
		r.consumes = bodyTypes(k.custom)
	}
	r.produces = append(r.produces, objectTypes(k.custom)...)
	if !k.custom && r.action == "list" || strings.HasPrefix(r.action, "watch") {
		r.produces = append(r.produces, streamTypes(k.custom)...)
	}
	k.routes = append(k.routes, &r)
}

func (k *kindRoutes) addCollection(root, path string, parameters []parameter) {
	name := k.kind.GroupVersionKind.Kind
	if !k.kind.CreateOnly {
		k.addList(root+path, "list"+k.scope+name, parameters)
		k.addWatch(root+"watch/"+path, "watch"+k.scope+name+"List", true, parameters)
	}
	if !k.kind.ReadOnly {
		k.add(route{method: http.MethodPost, path: root + path, action: "post", operation: "create" + k.scope + name,
			description: "create " + withArticle(name), body: k.object, answers: created(k.object)}, createQuery, parameters)
	}
	if !k.kind.ReadOnly && !k.kind.CreateOnly && !k.kind.OneByOne {
		k.addClear(root+path, parameters)
	}
}

func (k *kindRoutes) addClear(path string, parameters []parameter) {
	name := k.kind.GroupVersionKind.Kind
	r := route{method: http.MethodDelete, path: path, action: "deletecollection", operation: "deletecollection" + k.scope + name,
		description: "delete collection of " + name, body: modelDeleteOptions, answers: ok(modelStatus)}
	query := clearQuery
	if k.custom {
		r.body, query = "", listQuery
	}
	k.add(r, query, parameters)
}

func (k *kindRoutes) addList(path, operation string, parameters []parameter) {
	verb := "list or watch"
	if k.kind.ReadOnly || k.custom {
		verb = "list"
	}
	k.add(route{method: http.MethodGet, path: path, action: "list", operation: operation,
		description: verb + " objects of kind " + k.kind.GroupVersionKind.Kind, answers: ok(k.list)}, listQuery, parameters)
}

// addWatch adds the old form of a watch, by its path: of many objects or of one.
func (k *kindRoutes) addWatch(path, operation string, many bool, parameters []parameter) {
	if k.custom || k.kind.ReadOnly {
		return
	}
	r := route{method: http.MethodGet, path: path, operation: operation, answers: ok(modelWatchEvent)}
	name := k.kind.GroupVersionKind.Kind
	if r.action = "watch"; many {
		r.action = "watchlist"
		r.description = "watch individual changes to a list of " + name + ". deprecated: use the 'watch' parameter with a list operation instead."
	} else {
		r.description = "watch changes to an object of kind " + name +
			". deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."
	}
	k.add(r, listQuery, parameters)
}

func (k *kindRoutes) addItem(root, path string, parameters []parameter) {
	name := k.kind.GroupVersionKind.Kind
	whole := resource.Subresource{Kind: k.kind.GroupVersionKind, Verbs: verbsOf(k.kind)}
	k.addReadWrite(root+path, whole, k.object, parameters)
	if k.kind.ReadOnly {
		return
	}
	gone := modelStatus
	if k.kind.ReturnDeleted && k.kind.Finalizing == nil { // a namespace is documented as others, though it is returned
		gone = k.object
	}
	k.add(route{method: http.MethodDelete, path: root + path, action: "delete", operation: "delete" + k.scope + name,
		description: "delete " + withArticle(name), body: modelDeleteOptions,
		answers: []answer{{http.StatusOK, "OK", gone}, {http.StatusAccepted, "Accepted", gone}}}, deleteQuery, parameters)
	k.addWatch(root+"watch/"+path, "watch"+k.scope+name, false, parameters)
}

func (k *kindRoutes) addSubresource(path string, sub resource.Subresource, parameters []parameter) {
	query, connected := queries[sub.Kind.Kind]
	if !connected {
		k.addReadWrite(path, sub, model(k.names[sub.Kind]), parameters)
		return
	}
	methods := []string{http.MethodGet, http.MethodPost}
	if sub.Name == "proxy" {
		methods = []string{
			http.MethodGet,
			http.MethodPost,
			http.MethodPut,
			http.MethodPatch,
			http.MethodDelete,
			http.MethodHead,
			http.MethodOptions,
		}
	}
	for _, method := range methods {
		connect := route{method: method, path: path, action: "connect", gvk: sub.Kind,
			operation:   "connect" + title(strings.ToLower(method)) + k.scope + k.kind.GroupVersionKind.Kind + title(sub.Name),
			description: "connect " + method + " requests to " + sub.Name + " of " + k.kind.GroupVersionKind.Kind,
			parameters:  slices.Concat(query, parameters),
			consumes:    []string{"*/*"}, produces: []string{"*/*"}, answers: ok(modelText)}
		k.routes = append(k.routes, &connect)
		if sub.Name == "proxy" {
			further := connect
			further.path += "/{path}"
			further.operation += "WithPath"
			further.parameters = append(slices.Clone(connect.parameters), parameterPath)
			k.routes = append(k.routes, &further)
		}
	}
}

// addReadWrite adds what is done with one object, or with a part of it.
func (k *kindRoutes) addReadWrite(path string, sub resource.Subresource, object model, parameters []parameter) {
	name := k.kind.GroupVersionKind.Kind
	of := "the specified " + name
	createOf := withArticle(name)
	if sub.Name != "" {
		of, createOf = sub.Name+" of "+of, sub.Name+" of "+createOf
	}
	suffix := k.scope + name + title(sub.Name)
	var query []parameter
	patched := changed(object)
	if k.custom {
		query, patched, sub.Kind = readQuery, ok(object), k.kind.GroupVersionKind
	}
	for _, verb := range sub.Verbs {
		switch {
		case verb == "get" && sub.Name == "log":
			k.add(route{method: http.MethodGet, path: path, gvk: sub.Kind, action: "get", operation: "read" + suffix,
				description: "read " + of, produces: []string{"text/plain"}, answers: ok(modelText)}, logQuery, parameters)
		case verb == "get":
			k.add(route{method: http.MethodGet, path: path, gvk: sub.Kind, action: "get", operation: "read" + suffix,
				description: "read " + of, answers: ok(object)}, query, parameters)
		case verb == "create" && sub.Name != "":
			k.add(route{method: http.MethodPost, path: path, gvk: sub.Kind, action: "post", operation: "create" + suffix,
				description: "create " + createOf, body: object, answers: created(object)}, createQuery, parameters)
		case verb == "update":
			k.add(route{method: http.MethodPut, path: path, gvk: sub.Kind, action: "put", operation: "replace" + suffix,
				description: "replace " + of, body: object, answers: changed(object)}, updateQuery, parameters)
		case verb == "patch":
			k.add(
				route{
					method:      http.MethodPatch,
					path:        path,
					gvk:         sub.Kind,
					action:      "patch",
					operation:   "patch" + suffix,
					consumes:    patchTypes(k.custom),
					description: "partially update " + of,
					body:        modelPatch,
					answers:     patched,
				},
				patchQuery,
				parameters,
			)
		}
	}
}

func ok(m model) []answer { return []answer{{http.StatusOK, "OK", m}} }

func changed(m model) []answer { return append(ok(m), answer{http.StatusCreated, "Created", m}) }

func created(m model) []answer { return append(changed(m), answer{http.StatusAccepted, "Accepted", m}) }

func title(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// withArticle is upstream's grammar.
func withArticle(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return kind
	case strings.ContainsRune("AEIOU", rune(kind[0])):
		return "an " + kind
	default:
		return "a " + kind
	}
}
