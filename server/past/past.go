package past

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/named"
)

// changesMax is how many changes one answer tells, the newest ones.
const (
	changesMax = 1000
	// newestTimeout is how long it is waited for the newest state; after it the answer is of what this server has, without values.
	newestTimeout = time.Second
	// retrySeconds is when to ask again if one has his share of answers: readMax are made at a time, on one server, of tenants, each with
	// up to history.changesBytesMax of values. More wait for as long as a request may take.
	retrySeconds = 10
	// answerBytesMax is how much the fields of one answer take, about: those of the newest changes. Of older ones they are counted.
	answerBytesMax = 8 << 20
)

// Source is what answers are made from.
type Source struct {
	named.Kinds
	Authorizer authorizer.Authorizer
	// Turns are those of the history that the storage has.
	Turns *Turns
}

// Past answers questions. It is safe for concurrent use.
type Past struct {
	source Source
}

// New returns a Past.
func New(s Source) *Past { return &Past{s} }

// Question names an object, and since when its changes are wanted; zero: all that are kept.
type Question struct {
	named.Question
	Since time.Time `json:"since,omitzero"`
}

// Answer is what was of an object, and of former ones of its name.
type Answer struct {
	Object explain.Object `json:"object"`
	// Changes are the oldest first; More says that there are older ones since the time that was asked for.
	Changes []Change `json:"changes"`
	More    bool     `json:"more,omitempty"`
	// Missing are parts that this server's history lacks: changes may have been there.
	Missing []history.Hole `json:"missing,omitempty"`
}

// Change is one change of the object.
type Change struct {
	// ResourceVersion is that of the object after it: a GET with resourceVersionMatch=Exact shows that.
	ResourceVersion uint64 `json:"resourceVersion,string"`
	// Time is when the leader took it, zero if that is not known.
	Time time.Time `json:"time,omitzero"`
	// Did is created, changed or deleted.
	Did string `json:"did"`
	UID string `json:"uid"`
	// By is the user, Manager its field manager where the user told one.
	By      string `json:"by,omitempty"`
	Manager string `json:"manager,omitempty"`
	// Cause is the write that a control loop reacted to, if one did and said so.
	Cause *Cause `json:"cause,omitempty"`
	// Fields are what differs; more than fieldsMax are counted only.
	Fields     []Field `json:"fields,omitempty"`
	FieldsMore int     `json:"fieldsMore,omitempty"`
	// Unknown says why what it was or became is not known.
	Unknown string `json:"unknown,omitempty"`
}

// Cause is a write of another object, or of the same one.
type Cause struct {
	// Object has no name if the caller may not get it.
	Object          explain.Object `json:"object,omitzero"`
	ResourceVersion uint64         `json:"resourceVersion,string"`
	Did             string         `json:"did,omitempty"`
	By              string         `json:"by,omitempty"`
}

// did is the verb of a change in a sentence.
var did = map[string]string{storage.Created: "created", storage.Updated: "changed", storage.Deleted: "deleted"}

// Answer tells of the object, as far as the caller may know. Errors are those of the API.
func (p *Past) Answer(ctx context.Context, caller user.Info, q Question) (Answer, error) {
	ctx, done, err := p.turn(ctx, caller)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	// Whatever was acknowledged before the question is in the answer, and judged: the namespace may be another tenant's since.
	newest := p.catchUp(ctx)
	object, err := p.source.Resolve(ctx, q.Question)
	if err != nil {
		return Answer{}, err
	}
	if !named.MayGet(ctx, p.source.Authorizer, caller, object) {
		return Answer{}, named.Forbidden(caller, object)
	}
	tables, err := p.source.Tables(ctx)
	if err != nil {
		return Answer{}, err
	}
	gr := schema.GroupResource{Group: object.Group, Resource: object.Resource}
	table := tables[gr]
	if table == nil {
		return Answer{}, apierrors.NewNotFound(gr, object.Name)
	}
	after, err := p.after(ctx, q.Since)
	if err != nil {
		return Answer{}, err
	}
	if began := table.NamespaceBegan(object.Namespace); after < began && !p.mayEverywhere(ctx, caller, object) {
		after = began - 1 // a former namespace of the name was somebody else's
	}
	changes, holes, more, err := table.Past(ctx, object.Namespace, object.Name, after, changesMax)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Object: object, Changes: []Change{}, More: more, Missing: holes}
	causes := &causes{ctx: ctx, past: p, caller: caller, tables: tables, judged: map[explain.Object]bool{}}
	bytes := 0
	for _, past := range slices.Backward(changes) {
		if !past.Time.IsZero() && past.Time.Before(q.Since) {
			continue // the revision of that time is not known
		}
		if !newest && past.Verb == storage.Updated {
			past.Unknown = cmp.Or(past.Unknown, unsure)
		}
		change := changeOf(object, &past)
		if bytes += bytesOf(change.Fields); bytes > answerBytesMax {
			change.Fields, change.FieldsMore = nil, change.FieldsMore+len(change.Fields)
		}
		change.Cause = causes.of(&past)
		answer.Changes = append(answer.Changes, change)
	}
	slices.Reverse(answer.Changes)
	if len(changes) == 0 && !more && q.Since.IsZero() {
		return answer, p.unheardOf(ctx, table, object)
	}
	return answer, nil
}

// mayEverywhere reports whether the caller may get such an object whatever its namespace.
func (p *Past) mayEverywhere(ctx context.Context, caller user.Info, object explain.Object) bool {
	object.Namespace = ""
	return named.MayGet(ctx, p.source.Authorizer, caller, object)
}

// turn waits until an answer may be made for a caller, who goes on with the context that is returned, and calls done.
func (p *Past) turn(ctx context.Context, caller user.Info) (turned context.Context, done func(), err error) {
	turned, done, err = p.source.Turns.take(ctx, caller)
	switch {
	case err == nil:
		return turned, done, nil
	case ctx.Err() != nil:
		err = history.ErrBusy
	}
	return nil, nil, apierrors.NewTooManyRequests(err.Error(), retrySeconds)
}

// bytesOf is about what fields take in an answer.
func bytesOf(fields []Field) (n int) {
	for _, f := range fields {
		text, err := json.Marshal(f)
		if err == nil {
			n += len(text)
		}
	}
	return n
}

// unsure is why a server tells no values that does not reach the others: they may be purged since.
const unsure = "this server does not reach the others: whether its values were purged is not known"

// catchUp waits for what was acknowledged before the question, and reports whether it is here. A server that lost the others answers from
// what it has, without values.
func (p *Past) catchUp(ctx context.Context) (newest bool) {
	ctx, cancel := context.WithTimeout(ctx, newestTimeout)
	defer cancel()
	_, err := p.source.Storage.LinearizableRevision(ctx)
	return err == nil
}

// unheardOf is a NotFound error unless there is such an object, which did not change for as long as history reaches.
func (p *Past) unheardOf(ctx context.Context, table *storage.Table, o explain.Object) error {
	_, err := table.Get(ctx, o.Namespace, o.Name, "0")
	return err
}

// after is the revision at a time, 0 if history does not reach back to it.
func (p *Past) after(ctx context.Context, since time.Time) (uint64, error) {
	if since.IsZero() {
		return 0, nil
	}
	revision, err := p.source.Storage.RevisionOf(ctx, since)
	if apierrors.IsResourceExpired(err) {
		return 0, nil
	}
	return revision, err
}

// Moment is the revision that a time had.
type Moment struct {
	ResourceVersion uint64 `json:"resourceVersion,string"`
}

// At returns the last revision of a time or before. The time must not be in the future.
func (p *Past) At(ctx context.Context, at time.Time) (Moment, error) {
	if now := p.source.Storage.Now(); at.After(now) {
		return Moment{}, apierrors.NewBadRequest(fmt.Sprintf("%s is in the future: it is %s", at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
	revision, err := p.source.Storage.RevisionOf(ctx, at)
	return Moment{revision}, err
}

func changeOf(o explain.Object, p *storage.Past) Change {
	c := Change{
		ResourceVersion: p.Revision, Time: p.Time, Did: did[p.Verb], UID: p.UID, By: p.User, Manager: p.FieldManager, Unknown: p.Unknown,
	}
	if p.Verb == storage.Updated && p.Unknown == "" {
		c.Fields, c.FieldsMore = differences(o, p.Before, p.After)
	}
	return c
}

// causes finds what led to changes. It is for one answer.
type causes struct {
	ctx    context.Context // of the answer
	past   *Past
	caller user.Info
	tables map[schema.GroupResource]*storage.Table
	judged map[explain.Object]bool
}

// of is what led to a change; nil if its writer did not say, or history does not have it.
func (c *causes) of(p *storage.Past) *Cause {
	if p.CauseRevision == 0 || p.CauseRevision >= p.Revision {
		return nil
	}
	cause := &Cause{ResourceVersion: p.CauseRevision}
	written, ok := c.past.source.Storage.WrittenAt(p.CauseRevision)
	table := c.tables[written.Resource]
	if !ok || table == nil || written.UID != p.CauseUID {
		return cause
	}
	cause.Object = explain.Object{
		Kind: table.Kind().GroupVersionKind.Kind, Group: written.Resource.Group, Resource: written.Resource.Resource,
		Namespace: written.Namespace, Name: written.Name,
	}
	may, known := c.judged[cause.Object]
	if !known {
		may = named.MayGet(c.ctx, c.past.source.Authorizer, c.caller, cause.Object)
		c.judged[cause.Object] = may
	}
	if !may {
		return &Cause{Object: explain.Object{Kind: cause.Object.Kind, Group: cause.Object.Group, Resource: cause.Object.Resource}}
	}
	cause.By, cause.Did = written.Origin.User, did[storage.Updated]
	switch {
	case written.Created:
		cause.Did = did[storage.Created]
	case written.Deleted:
		cause.Did = did[storage.Deleted]
	}
	return cause
}
