package lists

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorders are the functions of client-go's recorders, of both packages, tools/record and tools/events.
var recorders = map[string]bool{"Event": true, "Eventf": true, "AnnotatedEventf": true}

// upstreamsReasons are the reasons of events in upstream's source, as far as they are constants, and a file that tells each.
func upstreamsReasons(t *testing.T) map[string]string {
	t.Helper()
	found, dirs := map[string]string{}, upstreamModules(t)
	for module, dir := range dirs {
		if !recording[module] {
			continue
		}
		read(t, dir, "EventType", func(f file) {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && recorders[called(call)] {
					if reason, ok := f.reason(t, dirs, call); ok {
						found[reason] = strings.TrimPrefix(f.path, dir+"/")
					}
				}
				return true
			})
		})
	}
	return found
}

// recording are upstream's modules whose code runs in a component that one of ours stands for.
var recording = map[string]bool{"k8s.io/kubernetes": true, "k8s.io/endpointslice": true, "k8s.io/client-go": true, "k8s.io/dynamic-resource-allocation": true}

// reason is the argument after the type of the event, Normal or Warning.
func (f file) reason(t *testing.T, modules map[string]string, call *ast.CallExpr) (string, bool) {
	t.Helper()
	for i, arg := range call.Args[:max(len(call.Args)-1, 0)] {
		if kind, ok := arg.(*ast.SelectorExpr); ok && strings.HasPrefix(kind.Sel.Name, "EventType") {
			return f.imported(t, modules, call.Args[i+1])
		}
	}
	return "", false
}

// imported is what an expression says, also by a constant of another package.
func (f file) imported(t *testing.T, modules map[string]string, e ast.Expr) (string, bool) {
	t.Helper()
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return f.text(e)
	}
	name, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	for module, dir := range modules {
		if inside, ok := strings.CutPrefix(imports(f.syntax)[name.Name]+"/", module+"/"); ok {
			text, ok := constantsOf(t, filepath.Join(dir, inside))[selector.Sel.Name]
			return text, ok
		}
	}
	return "", false
}

// reasonAt is where the functions of a recorder take the reason.
var reasonAt = map[string]int{"Event": 2, "Eventf": 2, "AnnotatedEventf": 3}

// ourReasons are the texts that recorders of events get as reasons, however long the way is that they come.
func ourReasons(t *testing.T) map[string]bool {
	t.Helper()
	f, all := newFlow(t, "../../..", "./agent/...", "./apiserver/...", "./controllers/...", "./server/...")
	found := map[string]bool{}
	for _, p := range all {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !recorders[called(call)] || len(call.Args) <= reasonAt[called(call)] {
					return true
				}
				for _, text := range f.texts(value{call.Args[reasonAt[called(call)]], p.TypesInfo, 0}, map[types.Object]bool{}) {
					found[text] = true
				}
				return true
			})
		}
	}
	return found
}

// TestEventReasons: each reason of upstream's events is told here, or docs/compatibility.md says why not.
func TestEventReasons(t *testing.T) {
	upstream, here, why := upstreamsReasons(t), ourReasons(t), excused(t, "event reasons")
	t.Logf("%d reasons of upstream, %d here", len(upstream), len(here))
	for _, name := range slices.Sorted(maps.Keys(upstream)) {
		reason, excuse := why[name]
		delete(why, name)
		switch {
		case excuse && here[name]:
			t.Errorf("%s is told here; docs/compatibility.md says: %s", name, reason)
		case !excuse && !here[name]:
			t.Errorf("%s (%s) is missing: tell it, or say why not in the table of docs/compatibility.md", name, upstream[name])
		}
	}
	delete(why, "reason")
	for name := range why {
		t.Errorf("%s is no reason of upstream's; take it out of docs/compatibility.md", name)
	}
}
