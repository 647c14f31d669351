package podfields

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Finding is a field of a spec that is not enforced.
type Finding struct {
	// Path begins with the one that Find was given, such as "spec.containers[0].ports[1].hostPort".
	Path    string
	Verdict Verdict
	Why     string
}

// String is one line for people.
func (f Finding) String() string {
	if f.Verdict == Refused {
		return f.Path + ": Setpoint's agent refuses the pod: " + f.Why
	}
	return f.Path + ": has no effect: " + f.Why
}

// Find lists the fields of spec, which stands at path, that a node refuses or drops, in the order of the types' fields.
func Find(spec *corev1.PodSpec, path string, node Node) []Finding {
	w := walk{spec: spec, node: node, path: []string{path}}
	w.visit(reflect.ValueOf(spec).Elem(), programs()[reflect.TypeFor[corev1.PodSpec]()])
	return w.found
}

// Refusals keeps the findings for which a pod is not run.
func Refusals(findings []Finding) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Verdict == Refused {
			out = append(out, f)
		}
	}
	return out
}

// program is what there is to look at in one type: fields that have a rule, or something with one below them.
type program []step

type step struct {
	index int
	name  string // "": inlined
	rule  *Rule
	below reflect.Type // nil: nothing
}

// programs are made from the table once.
var programs = sync.OnceValue(func() map[reflect.Type]program {
	rules := map[reflect.Type]map[string]*Rule{}
	for _, t := range Table() {
		byName := map[string]*Rule{}
		for i := range t.Rules {
			if t.Rules[i].Verdict == Harmless {
				continue
			}
			for _, name := range split(t.Rules[i].Fields) {
				byName[name] = &t.Rules[i]
			}
		}
		rules[typeOf(t)] = byName
	}
	out := map[reflect.Type]program{}
	compile(reflect.TypeFor[corev1.PodSpec](), rules, rules[reflect.TypeFor[corev1.PodSpec]()], out)
	return out
})

// compile reports whether there is anything to look at in t. own are the rules of t, or of the type into which it is inlined.
func compile(t reflect.Type, rules map[reflect.Type]map[string]*Rule, own map[string]*Rule, out map[reflect.Type]program) bool {
	if done, ok := out[t]; ok {
		return len(done) > 0
	}
	var p program
	for i := range t.NumField() {
		f := t.Field(i)
		name := jsonName(f)
		below := structOf(f.Type)
		s := step{index: i, name: name, rule: own[name]}
		switch {
		case below == nil || s.rule != nil && s.rule.When == nil:
		case name == "" && compile(below, rules, own, out), name != "" && rules[below] != nil && compile(below, rules, rules[below], out):
			s.below = below
		}
		if s.rule != nil || s.below != nil {
			p = append(p, s)
		}
	}
	out[t] = p
	return len(p) > 0
}

// jsonName is the field's name in JSON, "" for one that is inlined.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// structOf is the struct of the core API that a field is, points to or lists, or nil. Types of other packages
// (quantities, label selectors) are one value.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[corev1.PodSpec]().PkgPath() {
		return nil
	}
	return t
}

type walk struct {
	spec  *corev1.PodSpec
	node  Node
	path  []string
	found []Finding
}

func (w *walk) visit(v reflect.Value, p program) {
	for i := range p {
		s := &p[i]
		field := v.Field(s.index)
		if field.IsZero() {
			continue
		}
		if s.name != "" {
			w.path = append(w.path, "."+s.name)
		}
		if s.rule == nil || !w.judge(v, s.rule) {
			w.descend(field, s)
		}
		if s.name != "" {
			w.path = w.path[:len(w.path)-1]
		}
	}
}

// judge reports whether the rule applies.
func (w *walk) judge(v reflect.Value, rule *Rule) bool {
	if rule.Unless != nil && rule.Unless(w.node) {
		return false
	}
	if rule.When != nil && !rule.When(At{Spec: w.spec, In: v.Addr().Interface(), List: w.list()}) {
		return false
	}
	found := Finding{Path: strings.Join(w.path, ""), Verdict: rule.Verdict, Why: rule.Why}
	if rule.Pointless != nil {
		found.Why += " (" + rule.On + " it has no effect)"
		if rule.Pointless(w.node) {
			found.Verdict, found.Why = Dropped, "this is "+strings.TrimPrefix(rule.On, "on ")
		}
	}
	w.found = append(w.found, found)
	return true
}

// list is the field of the spec below which the walk is.
func (w *walk) list() string {
	if len(w.path) < 2 {
		return ""
	}
	return w.path[1][1:]
}

func (w *walk) descend(field reflect.Value, s *step) {
	if s.below == nil {
		return
	}
	p := programs()[s.below]
	switch field.Kind() {
	case reflect.Pointer:
		w.visit(field.Elem(), p)
	case reflect.Slice:
		for i := range field.Len() {
			w.path = append(w.path, "["+strconv.Itoa(i)+"]")
			w.visit(field.Index(i), p)
			w.path = w.path[:len(w.path)-1]
		}
	default:
		w.visit(field, p)
	}
}
