package past

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/named"
)

// diffObjectsMax is how many objects one answer of `setpoint diff` tells: those that changed first.
const diffObjectsMax = 2000

// transient are kinds of which only those are told who ask for them: they are many, and say what the other objects say.
var transient = []schema.GroupResource{
	{Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"},
}

// Span is what `setpoint diff` asks: what happened between two times.
type Span struct {
	// From is zero for all that is kept, To for now.
	From, To time.Time
	// Kind is as in a named.Question, "": all kinds but transient ones. Namespace is the only one, "": all, and objects without one.
	Kind, Namespace string
}

// Difference is what happened between two times.
type Difference struct {
	// From and To are the revisions whose objects are compared.
	From uint64 `json:"fromResourceVersion,string"`
	To   uint64 `json:"toResourceVersion,string"`
	// Groups are by namespace and kind, objects without a namespace first.
	Groups []Group `json:"groups"`
	// Left counts the objects that changed and are not told, up to history's limit. LeftKinds are kinds that are told only if they
	// are asked for, Forbidden those that the caller may not list, whether they changed or not.
	Left      int      `json:"objectsLeftOut,omitempty"`
	LeftKinds []string `json:"kindsLeftOut,omitempty"`
	Forbidden []string `json:"kindsForbidden,omitempty"`
	// Missing are parts that this server's history lacks.
	Missing []history.Hole `json:"missing,omitempty"`
}

// Group are the objects of one kind in one namespace.
type Group struct {
	Namespace string    `json:"namespace,omitempty"`
	Kind      string    `json:"kind"`
	APIGroup  string    `json:"group,omitempty"`
	Objects   []Changed `json:"objects"`
}

// Changed is an object that changed.
type Changed struct {
	Name string `json:"name"`
	// Did is created, changed, deleted, replaced (by another of its name) or "created and deleted".
	Did string `json:"did"`
	// Writes counts the changes; ResourceVersion and Time are those of the last one.
	Writes          int       `json:"writes"`
	ResourceVersion uint64    `json:"resourceVersion,string"`
	Time            time.Time `json:"time,omitzero"`
	// By are who wrote, each once and in their order; ByMore: there are others.
	By     []storage.Writer `json:"by,omitempty"`
	ByMore bool             `json:"byMore,omitempty"`
	// Fields are what differs between the two times if it is the same object; more than fieldsMax, and those beyond what an answer may
	// have, are counted only.
	Fields     []Field `json:"fields,omitempty"`
	FieldsMore int     `json:"fieldsMore,omitempty"`
	// Unknown says why they are not known.
	Unknown string `json:"unknown,omitempty"`
}

// Diff tells what happened between two times, of what the caller may list. Errors are those of the API.
func (p *Past) Diff(ctx context.Context, caller user.Info, s Span) (*Difference, error) {
	ctx, done, err := p.turn(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer done()
	d := &diff{past: p, caller: caller, span: s, newest: p.catchUp(ctx)}
	if err := d.choose(ctx); err != nil { // with the newest state: the namespace may be another tenant's since
		return nil, err
	}
	if err := d.revisions(ctx); err != nil {
		return nil, err
	}
	found, err := p.source.Storage.Between(ctx, d.scope, d.answer.From, d.answer.To)
	if err != nil {
		return nil, err
	}
	d.fill(found)
	return &d.answer, nil
}

// diff makes one Difference.
type diff struct {
	past   *Past
	caller user.Info
	span   Span
	// newest: this server has what was acknowledged before the question.
	newest bool
	scope  storage.Scope
	kinds  map[schema.GroupResource]bool
	// former are the kinds of which the caller may know former namespaces; began is when the present one was made.
	former map[schema.GroupResource]bool
	began  uint64
	answer Difference
	bytes  int
}

// choose finds the kinds that are asked for and may be listed.
func (d *diff) choose(ctx context.Context) error {
	tables, err := d.past.source.Tables(ctx)
	if err != nil {
		return err
	}
	d.kinds, d.former = map[schema.GroupResource]bool{}, map[schema.GroupResource]bool{}
	d.scope = storage.Scope{Tables: tables, Namespace: d.span.Namespace, Holds: d.holds, Limit: diffObjectsMax}
	if d.span.Kind != "" {
		return d.chooseOne(ctx, tables)
	}
	var refused explain.Object
	for gr, table := range tables {
		o := explain.Object{Group: gr.Group, Resource: gr.Resource, Namespace: d.span.Namespace}
		switch {
		case table == nil, d.span.Namespace != "" && table.Kind().ClusterScoped:
		case slices.Contains(transient, gr):
			d.answer.LeftKinds = append(d.answer.LeftKinds, gr.String())
		case !d.take(ctx, gr, o, table):
			if refused.Resource == "" || o.Resource < refused.Resource { // always the same one
				refused = o
			}
			d.answer.Forbidden = append(d.answer.Forbidden, gr.String())
		}
	}
	if len(d.kinds) == 0 {
		return named.ForbiddenTo(d.caller, "list", refused)
	}
	slices.Sort(d.answer.LeftKinds)
	slices.Sort(d.answer.Forbidden)
	return nil
}

func (d *diff) chooseOne(ctx context.Context, tables map[schema.GroupResource]*storage.Table) error {
	o, err := d.past.source.Resolve(ctx, named.Question{Kind: d.span.Kind, Namespace: d.span.Namespace})
	if err != nil {
		return err
	}
	gr := schema.GroupResource{Group: o.Group, Resource: o.Resource}
	table := tables[gr]
	if table == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the server keeps no %s", gr))
	}
	d.scope.Table, d.scope.Namespace = table, o.Namespace
	if !d.take(ctx, gr, o, table) {
		return named.ForbiddenTo(d.caller, "list", o)
	}
	return nil
}

// take takes a kind in if the caller may list it.
func (d *diff) take(ctx context.Context, gr schema.GroupResource, o explain.Object, table *storage.Table) bool {
	judge := d.past.source.Authorizer
	if !named.May(ctx, judge, d.caller, "list", o) {
		return false
	}
	d.kinds[gr] = true
	if o.Namespace != "" {
		d.began = table.NamespaceBegan(o.Namespace)
		o.Namespace = ""
		d.former[gr] = d.began > 0 && named.May(ctx, judge, d.caller, "list", o)
	}
	return true
}

// holds reports whether a change may be told: one in a former namespace only to those who may list everywhere.
func (d *diff) holds(of schema.GroupResource, _ string, revision uint64) bool {
	return d.kinds[of] && (revision >= d.began || d.former[of])
}

// revisions finds those of the two times.
func (d *diff) revisions(ctx context.Context) error {
	store := d.past.source.Storage
	from, to := d.span.From, d.span.To
	if !to.IsZero() && from.After(to) {
		return apierrors.NewBadRequest(fmt.Sprintf("%s is after %s: name the earlier time first", spoken(from), spoken(to)))
	}
	d.answer.From, d.answer.To = store.OldestRevision(), store.Revision()
	if !from.IsZero() {
		moment, err := d.past.At(ctx, from)
		if err != nil {
			return err
		}
		d.answer.From = moment.ResourceVersion
	}
	if !to.IsZero() {
		moment, err := d.past.At(ctx, to)
		if err != nil {
			return err
		}
		d.answer.To = moment.ResourceVersion
	}
	d.answer.To = max(d.answer.From, d.answer.To)
	return nil
}

func spoken(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fill groups what was found.
func (d *diff) fill(found *storage.Period) {
	d.answer.Left, d.answer.Missing, d.answer.Groups = found.Left, found.Holes, []Group{}
	slices.SortFunc(found.Objects, func(a, b storage.Stretch) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Resource.Resource, b.Resource.Resource),
			cmp.Compare(a.Resource.Group, b.Resource.Group), cmp.Compare(a.Name, b.Name))
	})
	var last *storage.Stretch
	for i := range found.Objects {
		s := &found.Objects[i]
		if last == nil || last.Namespace != s.Namespace || last.Resource != s.Resource {
			kind := d.scope.Tables[s.Resource].Kind().GroupVersionKind
			d.answer.Groups = append(d.answer.Groups, Group{Namespace: s.Namespace, Kind: kind.Kind, APIGroup: kind.Group})
		}
		group := &d.answer.Groups[len(d.answer.Groups)-1]
		group.Objects = append(group.Objects, d.changed(s))
		last = s
	}
}

func (d *diff) changed(s *storage.Stretch) Changed {
	c := Changed{
		Name: s.Name, Did: didBetween(s), Writes: s.Changes, ResourceVersion: s.Revision, Time: s.Time,
		By: s.Writers, ByMore: s.WritersMore, Unknown: s.Unknown,
	}
	switch {
	case s.Before == nil || s.After == nil:
		return c
	case !d.newest:
		c.Unknown = unsure
		return c
	}
	o := explain.Object{Group: s.Resource.Group, Resource: s.Resource.Resource}
	c.Fields, c.FieldsMore = differences(o, s.Before, s.After)
	if d.bytes += bytesOf(c.Fields); d.bytes > answerBytesMax {
		c.Fields, c.FieldsMore = nil, c.FieldsMore+len(c.Fields)
	}
	return c
}

// didBetween is what two times say of an object.
func didBetween(s *storage.Stretch) string {
	switch {
	case s.Replaced:
		return "replaced"
	case s.Existed && s.Exists:
		return did[storage.Updated]
	case s.Exists:
		return did[storage.Created]
	case s.Existed:
		return did[storage.Deleted]
	}
	return did[storage.Created] + " and " + did[storage.Deleted]
}
