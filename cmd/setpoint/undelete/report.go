package undelete

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/apiserver/explain"
)

// report is what was given back, or would be.
type report struct {
	Object explain.Object `json:"object"`
	// ResourceVersion is that of the time of which all is.
	ResourceVersion uint64    `json:"resourceVersion,string"`
	DryRun          bool      `json:"dryRun,omitempty"`
	Given           []given   `json:"given"`
	LeftOut         []leftOut `json:"leftOut,omitempty"`
	// Unjudged says what a dry run could not judge.
	Unjudged string `json:"unjudged,omitempty"`
}

type given struct {
	Object explain.Object `json:"object"`
	// UID is the new one; "" after a dry run.
	UID       types.UID `json:"uid,omitempty"`
	FormerUID types.UID `json:"formerUID"`
	// Notes are what is not as it was.
	Notes []string `json:"notes,omitempty"`
}

type leftOut struct {
	Object explain.Object `json:"object"`
	Why    string         `json:"why"`
}

const unjudged = "whether each object in the namespace is accepted can be said only once that is there: " +
	"if one is refused, all is taken back"

func (r *report) fill(g *giver) {
	for _, p := range g.plan.parts() {
		if !slices.ContainsFunc(g.meanwhile, func(o omission) bool { return o.part == p }) {
			r.Given = append(r.Given, given{Object: nameOf(p), UID: g.uids[p.uid], FormerUID: p.uid, Notes: p.notes})
		}
	}
	for _, o := range slices.Concat(g.plan.leftOut, g.meanwhile) {
		r.LeftOut = append(r.LeftOut, leftOut{nameOf(o.part), o.why})
	}
	if r.DryRun && len(r.Given) > 1 {
		r.Unjudged = unjudged
	}
}

func nameOf(p *part) explain.Object {
	return explain.Object{
		Kind: p.object.GetKind(), Group: p.resource.Group, Resource: p.resource.Resource,
		Namespace: p.object.GetNamespace(), Name: p.object.GetName(),
	}
}

// print writes what came back in its order, and then what is left out.
func (r *report) print(w io.Writer) error {
	verb := "given back"
	if r.DryRun {
		verb = "would be given back"
	}
	var out strings.Builder
	for _, g := range r.Given {
		fmt.Fprintf(&out, "%s %s", g.Object, verb)
		if len(g.Notes) > 0 {
			fmt.Fprintf(&out, ", %s", strings.Join(g.Notes, ", "))
		}
		out.WriteByte('\n')
	}
	if len(r.LeftOut) > 0 {
		out.WriteString("\nleft out:\n")
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(&out, "  %s: %s\n", l.Object, l.Why)
	}
	if r.Unjudged != "" {
		fmt.Fprintf(&out, "\n%s\n", r.Unjudged)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
