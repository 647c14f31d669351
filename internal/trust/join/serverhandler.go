package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// ServerPath is where the handler for servers belongs, as Path is for nodes, which may not begin with the same letters.
const ServerPath = "/setpoint.v1.ServerJoinService/Join"

// serverRequest, serverResponse and member are what travels. The field names are part of the protocol.
type serverRequest struct {
	Token   string `json:"token"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

type serverResponse struct {
	Files   trust.Shared `json:"files"`
	Servers []member     `json:"servers"`
}

type member struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// ServerHandlerConfig is what lets servers in.
type ServerHandlerConfig struct {
	// Admit fails with ErrServerTokenRefused unless the token lets servers in at this moment. Take counts a server for it, once; it
	// fails as Admit does, and with ErrNoMoreServers, ErrLetInBefore and ErrServerNameTaken.
	Admit func(ctx context.Context, token tokens.Token) error
	Take  func(ctx context.Context, token tokens.Token, server trust.Server) error
	// Free fails with ErrServerNameTaken if a node has the name.
	Free func(ctx context.Context, name string) error
	// Follows is as HandlerConfig has it.
	Follows func() bool
	// Revoked says that the token with an id, or a server, was shut out, and since when.
	Revoked func(tokenID, name string) error
	// Shared are the files that all servers have.
	Shared func() (trust.Shared, error)
	// Servers are the members at this moment.
	Servers func() []trust.Server
	Logger  *slog.Logger
}

type serverHandler struct {
	config ServerHandlerConfig
	gate   gate
}

// NewServerHandler returns the side of the members for servers that join. It hands out all keys of the cluster, so it judges everything
// else before. It needs no authentication in front of it.
func NewServerHandler(config ServerHandlerConfig) http.Handler {
	return &serverHandler{config: config, gate: newGate(config.Logger)}
}

// ServeHTTP implements http.Handler. Refusals are Kubernetes Status objects.
func (h *serverHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked serverRequest
	answer, err := admit(&h.gate, w, r, &asked, func(r *http.Request) (*serverResponse, error) { return h.grant(r, &asked) })
	if err != nil {
		h.gate.refuse(w, r, asked.Name, err)
		return
	}
	h.gate.log.Info("a server that joins got the keys of the cluster", "server", asked.Name, "at", asked.Address, "address", r.RemoteAddr)
	writeJSON(w, http.StatusOK, answer)
}

func (h *serverHandler) grant(r *http.Request, asked *serverRequest) (*serverResponse, error) {
	if !follows(h.config.Follows) {
		return nil, errBehind
	}
	token, err := tokens.Parse(asked.Token)
	if err != nil || token.Role != tokens.RoleServer {
		return nil, refusedServer(ErrServerTokenRefused)
	}
	if err := h.config.Admit(r.Context(), token); err != nil {
		return nil, refusedServer(err)
	}
	if err := h.config.Revoked(token.ID(), asked.Name); err != nil {
		return nil, forbidden(err.Error())
	}
	server, err := h.judge(r.Context(), asked)
	if err != nil {
		return nil, err
	}
	if r.TLS == nil {
		return nil, forbidden("keys are sent over TLS alone")
	}
	shared, err := h.config.Shared()
	if err != nil {
		return nil, forbidden(err.Error())
	}
	if err := h.config.Take(r.Context(), token, server); err != nil {
		return nil, refusedServer(err)
	}
	answer := &serverResponse{Files: shared}
	for _, s := range h.config.Servers() {
		answer.Servers = append(answer.Servers, member{s.Name, s.Endpoint})
	}
	return answer, nil
}

// judge says whether a server may have its name: nobody else has it.
func (h *serverHandler) judge(ctx context.Context, asked *serverRequest) (trust.Server, error) {
	servers, err := trust.ParseServers(asked.Name + "=" + asked.Address)
	if err != nil || len(servers) != 1 {
		return trust.Server{}, apierrors.NewBadRequest(fmt.Sprintf("this is no name and no host:port of a server: %v", err))
	}
	isNamed := func(s trust.Server) bool { return s.Name == asked.Name }
	if at := slices.IndexFunc(h.config.Servers(), isNamed); at >= 0 {
		return trust.Server{}, refusedServer(fmt.Errorf("%w: %s is a server of the cluster already, at %s",
			ErrServerNameTaken, asked.Name, h.config.Servers()[at].Endpoint))
	}
	if err := h.config.Free(ctx, asked.Name); err != nil {
		return trust.Server{}, refusedServer(err)
	}
	return servers[0], nil
}

// refusedServer is an error as it is answered.
func refusedServer(err error) error {
	switch {
	case errors.Is(err, ErrServerTokenRefused):
		return apierrors.NewUnauthorized(ErrServerTokenRefused.Error())
	case errors.Is(err, ErrServerNameTaken):
		return forbidden(err.Error() + ": choose another --name; if that machine is gone for good, 'setpoint cluster remove' makes the name free")
	case errors.Is(err, ErrNoMoreServers), errors.Is(err, ErrLetInBefore):
		return forbidden(err.Error())
	}
	return apierrors.NewServiceUnavailable("the join token cannot be judged now, try again: " + err.Error())
}
