package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// serveRotate carries out an order about the rotation of a key.
func (a *Admin) serveRotate(w http.ResponseWriter, r *http.Request) {
	var order rotations.Order
	err := ReadOrder(http.MaxBytesReader(w, r.Body, changeBodyBytes), &order)
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with an order to rotate: %v", err), http.StatusBadRequest)
		return
	}
	progress, err := a.config.Rotations.Carry(r.Context(), order)
	if err != nil {
		http.Error(w, err.Error(), rotateStatus(err))
		return
	}
	if progress.Changed {
		a.config.Logger.Info("rotation: ordered", "order", order.Order, "kind", order.Kind, "generation", progress.Generation)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(progress) // the client is gone if this fails
}

func rotateStatus(err error) int {
	for _, mistake := range []error{
		rotation.ErrKind, rotation.ErrNotBuilt, rotation.ErrKept, rotation.ErrKeptShort, rotation.ErrKeepsNothing, rotations.ErrOrder,
	} {
		if errors.Is(err, mistake) {
			return http.StatusBadRequest
		}
	}
	for _, refusal := range []error{rotation.ErrTooLate, rotation.ErrNothing, rotation.ErrTooOld, rotation.ErrRefused, rotations.ErrDropped} {
		if errors.Is(err, refusal) {
			return http.StatusConflict
		}
	}
	return http.StatusServiceUnavailable
}

// OrderRotation has a server carry out an order about the rotation of a key.
func OrderRotation(ctx context.Context, config *rest.Config, order rotations.Order) (rotation.Progress, error) {
	progress := rotation.Progress{}
	err := callCluster(ctx, config, rotatePath, order, &progress)
	if refused := (*Refusal)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return progress, fmt.Errorf("the server: %w", rotations.ErrTooOld)
	}
	return progress, err
}

// AskHeld asks another server which keys it holds, as a server.
func AskHeld(
	peer func(name, address string) (*http.Client, string),
) func(ctx context.Context, server trust.Server) ([]rotation.Held, error) {
	return func(ctx context.Context, server trust.Server) ([]rotation.Held, error) {
		var held []rotation.Held
		client, base := peer(server.Name, server.Endpoint)
		err := call(ctx, client, base+heldPath, struct{}{}, &held)
		if refused := (*Refusal)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
			return nil, rotations.ErrTooOld
		}
		return held, err
	}
}
