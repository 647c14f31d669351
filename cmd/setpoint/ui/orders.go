package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// lessonPath takes an admin.LessonOrder, loopPath an admin.PaceOrder, whatIfPath a question. Each is answered with JSON.
	lessonPath = "/lesson"
	loopPath   = "/loop"
	whatIfPath = "/what-if"

	// orderTimeout bounds one server's answer to an order, advanceTimeout that to one that moves the clock, as for the commands.
	orderTimeout   = 30 * time.Second
	advanceTimeout = 10 * time.Minute
)

// asker answers what would happen, in this process: see Shell.WhatIf.
type asker = func(ctx context.Context, servers []*rest.Config, question []byte) (any, error)

// orders are what a page may want that is more than reading: orders to a cluster to learn on, which the servers of any other refuse, and
// a what-if, which changes nothing and costs this process memory.
type orders struct {
	servers *servers
	whatIf  asker
	// asking is whether a what-if is under way.
	asking atomic.Bool
}

var errAsking = errors.New("one what-if is under way, of this page or of another: wait for it, or stop it")

func (o *orders) has(path string) bool {
	return path == lessonPath || path == loopPath || path == whatIfPath
}

// serve carries out what a page wants. Beside what every request needs it needs an Origin and the type of JSON, which a browser sends of a
// script only: no link and no form of another page can order anything.
func (o *orders) serve(w http.ResponseWriter, r *http.Request, path string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		refusal{http.StatusMethodNotAllowed, "want POST"}.say(w)
		return
	case r.Header.Get("Origin") == "" || kind != "application/json":
		refusal{http.StatusForbidden, "orders come from this page alone: use 'setpoint dev', 'setpoint loops' or 'setpoint what-if'"}.say(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		refusal{http.StatusRequestEntityTooLarge, "an order has at most 64 KiB"}.say(w)
		return
	}
	answer, err := o.carryOut(r.Context(), path, body)
	if err != nil {
		code := statusOf(err)
		o.servers.stay("", code == http.StatusUnauthorized)
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the browser is gone if this fails
}

func (o *orders) carryOut(ctx context.Context, path string, body []byte) (any, error) {
	servers, err := o.servers.inOrder()
	if len(servers) == 0 {
		return nil, err
	}
	switch path {
	case lessonPath:
		return oneAfterTheOther(ctx, servers, body, lesson)
	case loopPath:
		return oneAfterTheOther(ctx, servers, body, pace)
	}
	if !o.asking.CompareAndSwap(false, true) {
		return nil, errAsking
	}
	defer o.asking.Store(false)
	return o.whatIf(ctx, servers, body)
}

func lesson(ctx context.Context, server *rest.Config, order admin.LessonOrder) (any, error) {
	limit := orderTimeout
	if order.Order == admin.AdvanceLesson {
		limit = advanceTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return struct{}{}, admin.OrderLesson(ctx, server, order)
}

func pace(ctx context.Context, server *rest.Config, order admin.PaceOrder) (any, error) {
	order.Here = false // servers alone say that to each other
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	return admin.OrderPace(ctx, server, order)
}

// oneAfterTheOther gives an order to each server until one has carried it out, has refused, or may have carried it out.
func oneAfterTheOther[O any](
	ctx context.Context, servers []*rest.Config, body []byte, give func(context.Context, *rest.Config, O) (any, error),
) (answer any, err error) {
	var order O
	if err := admin.ReadOrder(bytes.NewReader(body), &order); err != nil {
		return nil, &admin.Refusal{StatusCode: http.StatusBadRequest, Reason: "no order: " + err.Error()}
	}
	for _, server := range servers {
		if answer, err = give(ctx, server, order); admin.IsFinal(err) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

// statusOf is the code with which a page is told of an error.
func statusOf(err error) int {
	refused := (*admin.Refusal)(nil)
	switch {
	case errors.As(err, &refused):
		return refused.StatusCode
	case apierrors.IsUnauthorized(err), errors.As(err, new(kubeconfig.ExpiredError)):
		return http.StatusUnauthorized
	case errors.Is(err, errAsking):
		return http.StatusTooManyRequests
	}
	return http.StatusBadGateway
}
