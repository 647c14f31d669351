package join

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/clip"
	"github.com/setpoint-io/setpoint/internal/sampled"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Path is where the handler belongs. It is a Connect procedure in its JSON form.
const Path = "/setpoint.v1.JoinService/Join"

// bodyMaxBytes bounds a request; a real one has about 1 KiB.
const bodyMaxBytes = 64 << 10

const (
	// joinsMax is how many requests are judged at the same time; more wait, up to judgeTimeout from their beginning, and get 429 then.
	joinsMax     = 16
	judgeTimeout = 10 * time.Second
	// bodyTimeout is how long a body may take to arrive: until then it keeps nobody waiting.
	bodyTimeout = 10 * time.Second
)

// nameBytesMax is how much of a name is logged: more than any node's has.
const nameBytesMax = 256

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
	GossipKey  string `json:"gossipKey"`
}

// HandlerConfig of the server's side.
type HandlerConfig struct {
	// Authority is the cluster's: it signs what nodes call servers with.
	Authority *trust.CA
	// Serving is the authority for what nodes serve with (trust.CA.NodeServing).
	Serving *trust.CA
	// Admits reports whether a token lets nodes join at this moment.
	Admits func(ctx context.Context, token trust.Token) (bool, error)
	// Claim gives a name to a key, or fails with ErrNameTaken if the name belongs to
	// another. shown: the connection has shown a certificate of the name with this key.
	Claim func(ctx context.Context, node, keyHash string, shown bool) error
	// Take counts a name for the token with an id, once, or fails with ErrNoMoreNames.
	Take func(ctx context.Context, tokenID, node string) error
	// Revoked says that a token (its id, "" for a node that renews), a node or its key was shut out, and since when. Nil: nobody is.
	Revoked func(tokenID, node, keyHash string) error
	// GossipKey is handed to every node that joins.
	GossipKey []byte
	// Services are the ranges of Services. No node serves at an address of them.
	Services []netip.Prefix
	// Servers are all servers of the cluster at this moment: no node gets their names.
	Servers func() []trust.Server
	// Logger gets every machine that joins or is refused. Nil: they are not logged.
	Logger *slog.Logger
}

type handler struct {
	config HandlerConfig
	log    *slog.Logger
	// refusals chooses which refusals are logged: anybody can make them.
	refusals sampled.Sampler
	// seats has an entry for each request that is judged now.
	seats chan struct{}
}

// NewHandler returns the server's side. It needs no authentication in front of it, and
// a listener that verifies the certificates it is shown (trust.Live.ServerConfig).
func NewHandler(config HandlerConfig) http.Handler {
	h := &handler{config: config, log: config.Logger, seats: make(chan struct{}, joinsMax)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	return h
}

// ServeHTTP implements http.Handler. Refusals are Kubernetes Status objects.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, node, err := h.join(w, r)
	if err != nil {
		if skipped, tell := h.refusals.Tell(sampled.Source(r.RemoteAddr), time.Now()); tell {
			h.log.Warn("a machine may not join", "node", clip.Text(node, nameBytesMax), "address", r.RemoteAddr, "err", err, "skipped", skipped)
		}
		writeStatus(w, err)
		return
	}
	h.log.Info("a node joined", "node", node, "address", r.RemoteAddr)
	writeJSON(w, http.StatusOK, answer)
}

func (h *handler) join(w http.ResponseWriter, r *http.Request) (answer response, node string, err error) {
	if r.Method != http.MethodPost {
		return answer, "", newRefusal(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "only POST is answered here")
	}
	asked, err := read(w, r)
	if err != nil {
		return answer, "", apierrors.NewBadRequest("the body is not a join request in JSON of at most 64 KiB: " + err.Error())
	}
	ctx, cancel := context.WithTimeout(r.Context(), judgeTimeout)
	defer cancel()
	select {
	case h.seats <- struct{}{}:
		defer func() { <-h.seats }()
	case <-ctx.Done():
		return answer, asked.NodeName, apierrors.NewTooManyRequestsError("too many machines join at this moment: try again")
	}
	answer, err = h.certify(r.WithContext(ctx), asked)
	return answer, asked.NodeName, err
}

// read reads the body.
func read(w http.ResponseWriter, r *http.Request) (*request, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // of a connection that has none, the context ends the request
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	asked := &request{}
	return asked, json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMaxBytes)).Decode(asked)
}

// certify judges the token before anything that costs more than a look.
func (h *handler) certify(r *http.Request, asked *request) (answer response, err error) {
	shown := shownFor(r, asked.NodeName)
	var token trust.Token
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
	now := time.Now()
	client, err := h.config.Authority.SignNode(request, now)
	if err != nil {
		return answer, apierrors.NewInternalError(err)
	}
	seen, _, _ := net.SplitHostPort(remote)
	serving, err := h.config.Serving.SignNodeServing(request, seen, h.config.Services, now)
	if err != nil {
		return answer, apierrors.NewInternalError(err)
	}
	return response{
		CertPEM: string(client), ServingPEM: string(serving), CAPEM: string(h.config.Authority.CertPEM()),
		GossipKey: base64.StdEncoding.EncodeToString(h.config.GossipKey),
	}, nil
}

// shownFor returns the certificate that the connection shows, if it is the node's and
// still valid: connections outlive certificates.
func shownFor(r *http.Request, node string) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	if leaf.Subject.CommonName != trust.NodeUser(node) || !slices.Equal(leaf.Subject.Organization, []string{trust.GroupNodes}) ||
		time.Now().After(leaf.NotAfter) {
		return nil
	}
	return leaf
}

func (h *handler) judge(ctx context.Context, text string) (trust.Token, error) {
	token, err := trust.ParseToken(text)
	if err != nil || token.Pin != h.config.Authority.Pin() {
		return trust.Token{}, apierrors.NewUnauthorized(ErrTokenRefused.Error())
	}
	admitted, err := h.config.Admits(ctx, token)
	if err != nil {
		return trust.Token{}, apierrors.NewServiceUnavailable("the join token cannot be looked up: " + err.Error())
	}
	if !admitted {
		return trust.Token{}, apierrors.NewUnauthorized(ErrTokenRefused.Error())
	}
	return token, nil
}

// judgeRevoked refuses who was shut out. The zero token is that of a node that renews.
func (h *handler) judgeRevoked(token trust.Token, request *trust.NodeRequest) error {
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

func forbidden(message string) error {
	return newRefusal(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func newRefusal(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

func writeStatus(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "internal error"}
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // a client that went away needs no answer
}
