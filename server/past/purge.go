package past

import (
	"context"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/server/named"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Purged says what was purged.
type Purged struct {
	Object explain.Object `json:"object"`
	// ResourceVersion is that of the purge: what the object was up to it is gone, what it is stays.
	ResourceVersion uint64 `json:"resourceVersion,string"`
}

// Purge removes what an object was, on all servers; that it changed, when and by whom stays. Who may is for the caller to judge.
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
	p.catchUp(ctx)
	changes, holes, _, err := table.Past(ctx, object.Namespace, object.Name, 0, 1)
	if err == nil && len(changes)+len(holes) == 0 { // a name that was never there is a mistake
		err = p.unheardOf(ctx, table, object)
	}
	if err != nil {
		return Purged{}, err
	}
	revision, err := table.Purge(ctx, object.Namespace, object.Name)
	return Purged{Object: object, ResourceVersion: revision}, err
}
