package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// Touch writes one object through one server, however often it has to try, and deletes it.
func Touch(ctx context.Context, c cluster.Cluster, server int, name string, timeout time.Duration) error {
	api := NewAPI(c)
	defer api.Close()
	return try(ctx, server, timeout, func(ctx context.Context) (history.Outcome, error) {
		_, outcome, err := api.do(ctx, server, http.MethodPost, Kinds[0].path("default"), object{Metadata: meta{Name: name}})
		if outcome == history.OK || outcome == history.Exists {
			_, outcome, err = api.do(ctx, server, http.MethodDelete, Kinds[0].path("default")+"/"+name, nil)
		}
		return outcome, err
	})
}

// Look lists the objects of an epoch, which has ended.
func Look(ctx context.Context, c cluster.Cluster, server int, kind Kind, namespace string, timeout time.Duration) (history.Op, error) {
	api := NewAPI(c)
	defer api.Close()
	op := history.Op{Kind: history.List, Replica: server}
	err := try(ctx, server, timeout, func(ctx context.Context) (history.Outcome, error) {
		o, outcome, err := api.do(ctx, server, http.MethodGet, kind.path(namespace), nil)
		if outcome != history.OK {
			return outcome, err
		}
		op.Revision, op.Items = o.revision(), nil
		for _, object := range o.Items {
			if ours(object.Metadata.Name) {
				op.Items = append(op.Items, object.item())
			}
		}
		return outcome, nil
	})
	return op, err
}

// Forgotten says whether a server refuses to go on watching after a revision.
func Forgotten(ctx context.Context, c cluster.Cluster, server int, kind Kind, namespace string, revision uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	api := NewAPI(c)
	defer api.Close()
	of := &epoch{Epoch: Epoch{Kind: kind}, namespace: namespace}
	w := &watcher{epoch: of, api: api, server: server, seen: revision, stream: &history.Stream{}}
	return errors.Is(w.watch(ctx), errExpired)
}

// try asks until the answer is OK.
func try(ctx context.Context, server int, timeout time.Duration, ask func(context.Context) (history.Outcome, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		outcome, err := ask(ctx)
		if outcome == history.OK {
			return nil
		}
		if wait(ctx, settlePause); ctx.Err() != nil {
			return fmt.Errorf("%s does not do it within %v: %w", cluster.Name(server), timeout, err)
		}
	}
}
