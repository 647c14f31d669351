package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
)

// serveToken makes a token with which servers join. Only a server can: it seals the token.
func (a *Admin) serveToken(w http.ResponseWriter, r *http.Request) {
	var wanted jointoken.Wanted
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, changeBodyBytes)).Decode(&wanted)
	if err == nil {
		err = jointoken.ValidateServer(wanted)
	}
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with a token for servers: %v", err), http.StatusBadRequest)
		return
	}
	token, err := a.config.ServerToken(r.Context(), wanted)
	if err != nil {
		http.Error(w, err.Error(), tokenStatus(err))
		return
	}
	a.config.Logger.Info("a token for servers was made", "id", token.ID, "servers", wanted.Nodes, "ttl", wanted.TTL)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(token) // the client is gone if this fails
}

func tokenStatus(err error) int {
	if errors.Is(err, trust.ErrNotShared) {
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// errTokenUnknown: a token was asked for, and there was no answer.
var errTokenUnknown = errors.New("it is not known whether a token was made: 'setpoint token list' shows it, 'setpoint token delete' takes it back")

// CreateServerToken has a server make a token with which servers join. Without an answer the error is Unanswered.
func CreateServerToken(ctx context.Context, config *rest.Config, wanted jointoken.Wanted) (*jointoken.Token, error) {
	if err := jointoken.ValidateServer(wanted); err != nil {
		return nil, err
	}
	token := &jointoken.Token{}
	return token, callOnce(ctx, config, tokenPath, wanted, token, errTokenUnknown)
}
