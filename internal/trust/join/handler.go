package join

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// Path is where the handler belongs. It is a Connect procedure in its JSON form.
const Path = "/setpoint.v1.JoinService/Join"

// request and response are what travels. The field names are part of the protocol.
type request struct {
	// Token is empty if the connection shows the node's certificate.
	Token    string `json:"token,omitempty"`
	CSRPEM   string `json:"csrPem"`
	NodeName string `json:"nodeName"`
}

type response struct {
	CertPEM    string `json:"certPem"`
	ServingPEM string `json:"servingPem"`
	CAPEM      string `json:"caPem"`
	// GossipKey is the one in use, for agents of releases that know one alone.
	GossipKey string `json:"gossipKey"`
	// GossipKeys are all, and the label of the pool; older servers do not say.
	GossipKeys *trust.GossipKeys `json:"gossipKeys,omitempty"`
}

// HandlerConfig of the server's side.
type HandlerConfig struct {
	// Authority is the cluster's: it signs what nodes call servers with.
	Authority *trust.CA
	// Serving is the authority for what nodes serve with (trust.CA.NodeServing).
	Serving *trust.CA
	// Admits reports whether a token lets nodes join at this moment.
	Admits func(ctx context.Context, token tokens.Token) (bool, error)
	// Claim gives a name to a key, or fails with ErrNameTaken if the name belongs to
	// another. shown: the connection has shown a certificate of the name with this key.
	Claim func(ctx context.Context, node, keyHash string, shown bool) error
	// Take counts a name for the token with an id, once, or fails with ErrNoMoreNames.
	Take func(ctx context.Context, tokenID, node string) error
	// Revoked says that a token (its id, "" for a node that renews), a node or its key was shut out, and since when. Nil: nobody is.
	Revoked func(tokenID, node, keyHash string) error
	// Follows reports whether this server knows of the newest keys, and of who was shut out before they were made; until then nobody gets a
	// certificate, nor keys. Nil: it does.
	Follows func() bool
	// GossipKeys are handed to every node that joins.
	GossipKeys func() trust.GossipKeys
	// Services are the ranges of Services. No node serves at an address of them.
	Services []netip.Prefix
	// Servers are all servers of the cluster at this moment: no node gets their names.
	Servers func() []trust.Server
	// Now is the time by which certificates are made and end; nil: the process's.
	Now func() time.Time
	// Logger gets every machine that joins or is refused. Nil: they are not logged.
	Logger *slog.Logger
}

type handler struct {
	config HandlerConfig
	gate   gate
}

// NewHandler returns the server's side. It needs no authentication in front of it, and
// a listener that verifies the certificates it is shown (trust.Live.ServerConfig).
func NewHandler(config HandlerConfig) http.Handler {
	return &handler{config: config, gate: newGate(config.Logger)}
}

// ServeHTTP implements http.Handler. Refusals are Kubernetes Status objects.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked request
	answer, err := admit(&h.gate, w, r, &asked, func(r *http.Request) (response, error) { return h.certify(r, &asked) })
	if err != nil {
		h.gate.refuse(w, r, asked.NodeName, err)
		return
	}
	h.gate.log.Info("a node joined", "node", asked.NodeName, "address", r.RemoteAddr)
	writeJSON(w, http.StatusOK, answer)
}

// certify judges the token before anything that costs more than a look.
func (h *handler) certify(r *http.Request, asked *request) (answer response, err error) {
	if !follows(h.config.Follows) {
		return answer, errBehind
	}
	shown := shownFor(r, asked.NodeName, h.now())
	var token tokens.Token
	if shown == nil {
		if token, err = h.judge(r.Context(), asked.Token); err != nil {
			return answer, err
		}
	}
	if err := judgeName(asked.NodeName, h.config.Servers()); err != nil {
		return answer, err
	}
	request, err := trust.ParseNodeRequest([]byte(asked.CSRPEM), asked.NodeName)
	if err != nil {
		return answer, apierrors.NewBadRequest(err.Error())
	}
	if shown != nil && trust.KeyHash(shown.RawSubjectPublicKeyInfo) != request.KeyHash() {
		return answer, forbidden("the certificate that the connection shows is of another key than the request")
	}
	if err := h.judgeRevoked(token, request); err != nil {
		return answer, err
	}
	if shown == nil {
		if err := h.take(r.Context(), token.ID(), asked.NodeName); err != nil {
			return answer, err
		}
	}
	err = h.config.Claim(r.Context(), request.Node, request.KeyHash(), shown != nil)
	if errors.Is(err, ErrNameTaken) {
		return answer, forbidden(err.Error() + ": start the agent with the data directory of that node, or with another --name; " +
			"if that machine is gone for good, 'kubectl delete node " + request.Node + "' makes the name free")
	}
	if err != nil {
		return answer, apierrors.NewServiceUnavailable("the name of the node cannot be looked up: " + err.Error())
	}
	return h.sign(request, r.RemoteAddr)
}

func (h *handler) sign(request *trust.NodeRequest, remote string) (answer response, err error) {
	now := h.now()
	client, err := h.config.Authority.SignNode(request, now)
	if err != nil {
		return answer, apierrors.NewInternalError(err)
	}
	seen, _, _ := net.SplitHostPort(remote)
	serving, err := h.config.Serving.SignNodeServing(request, seen, h.config.Services, now)
	if err != nil {
		return answer, apierrors.NewInternalError(err)
	}
	gossip := h.config.GossipKeys()
	return response{
		CertPEM: string(client), ServingPEM: string(serving), CAPEM: string(h.config.Authority.CertPEM()),
		GossipKey: base64.StdEncoding.EncodeToString(gossip.Keys[0]), GossipKeys: &gossip,
	}, nil
}

func (h *handler) now() time.Time {
	if h.config.Now == nil {
		return time.Now()
	}
	return h.config.Now()
}

// shownFor returns the certificate that the connection shows, if it is the node's and
// still valid: connections outlive certificates.
func shownFor(r *http.Request, node string, now time.Time) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	if leaf.Subject.CommonName != trust.NodeUser(node) || !slices.Equal(leaf.Subject.Organization, []string{trust.GroupNodes}) ||
		now.After(leaf.NotAfter) {
		return nil
	}
	return leaf
}

func (h *handler) judge(ctx context.Context, text string) (tokens.Token, error) {
	token, err := tokens.Parse(text)
	if err != nil || token.Role != tokens.RoleNode || !h.config.Authority.Holds(token.Pin) {
		return tokens.Token{}, apierrors.NewUnauthorized(ErrTokenRefused.Error())
	}
	admitted, err := h.config.Admits(ctx, token)
	if err != nil {
		return tokens.Token{}, apierrors.NewServiceUnavailable("the join token cannot be looked up: " + err.Error())
	}
	if !admitted {
		return tokens.Token{}, apierrors.NewUnauthorized(ErrTokenRefused.Error())
	}
	return token, nil
}

// judgeRevoked refuses who was shut out. The zero token is that of a node that renews.
func (h *handler) judgeRevoked(token tokens.Token, request *trust.NodeRequest) error {
	if h.config.Revoked == nil {
		return nil
	}
	id := ""
	if token.Secret != "" {
		id = token.ID()
	}
	if err := h.config.Revoked(id, request.Node, request.KeyHash()); err != nil {
		return forbidden(err.Error())
	}
	return nil
}

// judgeName is trust.JudgeNodeName in an answer.
func judgeName(node string, servers []trust.Server) error {
	switch err := trust.JudgeNodeName(node, servers); {
	case errors.Is(err, trust.ErrReservedName):
		return forbidden(err.Error() + ": start the agent with another --name")
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// take counts the name for the token, which judge has admitted.
func (h *handler) take(ctx context.Context, tokenID, node string) error {
	switch err := h.config.Take(ctx, tokenID, node); {
	case errors.Is(err, ErrNoMoreNames):
		return forbidden(err.Error())
	case err != nil:
		return apierrors.NewServiceUnavailable("the names that the join token let in cannot be counted: " + err.Error())
	}
	return nil
}
