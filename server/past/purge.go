package past

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/server/named"
)

// Purged says what was purged.
type Purged struct {
	Object explain.Object `json:"object"`
	// ResourceVersion is that of the purge: what the object was up to it is gone, what it is stays.
	ResourceVersion uint64 `json:"resourceVersion,string"`
	// Unheard: the server that was asked knows of no such object, now or before. Others may, whose history reaches further back.
	Unheard bool `json:"unheard,omitempty"`
}

// Purge removes what an object was, on all servers, whatever the history of this one has; that it changed, when and by whom stays. Who may
// is for the caller to judge.
func (p *Past) Purge(ctx context.Context, q named.Question) (Purged, error) {
	object, err := p.source.Resolve(ctx, q)
	if err != nil {
		return Purged{}, err
	}
	tables, err := p.source.Tables(ctx)
	if err != nil {
		return Purged{}, err
	}
	gr := schema.GroupResource{Group: object.Group, Resource: object.Resource}
	table := tables[gr]
	if table == nil {
		return Purged{}, apierrors.NewNotFound(gr, object.Name)
	}
	revision, err := table.Purge(ctx, object.Namespace, object.Name)
	if err != nil {
		return Purged{}, err
	}
	return Purged{Object: object, ResourceVersion: revision, Unheard: p.unheard(ctx, table, object)}, nil
}

// unheard reports whether there is no trace of an object here, as of a name that is a mistake. It takes no longer than newestTimeout.
func (p *Past) unheard(ctx context.Context, table *storage.Table, o explain.Object) bool {
	ctx, cancel := context.WithTimeout(ctx, newestTimeout)
	defer cancel()
	changes, holes, _, err := table.Past(ctx, o.Namespace, o.Name, 0, 1)
	return err == nil && len(changes)+len(holes) == 0 && apierrors.IsNotFound(p.unheardOf(ctx, table, o))
}
