package discovery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// TestPaths writes down what generators of clients make functions of, in a line for each
// path and operation: they are upstream's.
func TestPaths(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	lines := map[string][]string{}
	for _, name := range []string{"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/coordination.k8s.io/v1", "version"} {
		var document spec3.OpenAPI
		if err := json.Unmarshal([]byte(body(t, get(t, handler, "/openapi/v3/"+name))), &document); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if document.Components.SecuritySchemes["BearerToken"] == nil {
			t.Errorf("%s does not say how clients show who they are", name)
		}
		for path, item := range document.Paths.Paths {
			lines[path] = linesOf(item)
		}
	}
	golden(t, "paths.json", lines)
}

func linesOf(item *spec3.Path) []string {
	var lines []string
	if shared := namesOf(item.Parameters); shared != "" {
		lines = append(lines, "all: "+shared)
	}
	operations := map[string]*spec3.Operation{"DELETE": item.Delete, "GET": item.Get, "HEAD": item.Head, "OPTIONS": item.Options, "PATCH": item.Patch, "POST": item.Post, "PUT": item.Put}
	for _, method := range slices.Sorted(maps.Keys(operations)) {
		op := operations[method]
		if op == nil {
			continue
		}
		action, _ := op.Extensions["x-kubernetes-action"].(string)
		line := fmt.Sprintf("%s %s (%s): %s; %s", method, op.OperationId, action, op.Description, namesOf(op.Parameters))
		if op.RequestBody != nil {
			line += "; takes " + contentOf(op.RequestBody.Content)
		}
		codes := op.Responses.StatusCodeResponses
		for _, code := range slices.Sorted(maps.Keys(codes)) {
			line += fmt.Sprintf("; %d %s %s", code, codes[code].Description, contentOf(codes[code].Content))
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func namesOf(parameters []*spec3.Parameter) string {
	var names []string
	for _, p := range parameters {
		if p.Description == "" || p.Required != (p.In == "path") {
			names = append(names, "unclear:")
		}
		names = append(names, p.In+"."+p.Name+"="+p.Schema.Type[0])
	}
	return strings.Join(names, " ")
}

func contentOf(content map[string]*spec3.MediaType) string {
	models := map[string][]string{}
	for _, mediaType := range slices.Sorted(maps.Keys(content)) {
		schema := content[mediaType].Schema
		name := strings.Join(schema.Type, "")
		if reference := schema.Ref.String(); reference != "" {
			name = reference[strings.LastIndex(reference, ".")+1:]
		}
		models[name] = append(models[name], mediaType)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(models)) {
		all = append(all, name+" as "+strings.Join(models[name], ", "))
	}
	return strings.Join(all, " or ")
}
