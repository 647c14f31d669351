package join

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// Path is where the handler belongs. It is a Connect procedure in its JSON form.
const Path = "/setpoint.v1.JoinService/Join"

const (
	// bodyMaxBytes bounds a request; a real one has about 1 KiB.
	bodyMaxBytes = 64 << 10
	// addressesMax bounds the addresses of one node.
	addressesMax = 32
)

// request and response are what travels. The field names are part of the protocol.
type request struct {
	Token     string   `json:"token"`
	CSRPEM    string   `json:"csrPem"`
	NodeName  string   `json:"nodeName"`
	Addresses []string `json:"addresses,omitempty"`
}

type response struct {
	CertPEM   string `json:"certPem"`
	CAPEM     string `json:"caPem"`
	GossipKey string `json:"gossipKey"`
}

// Signer signs the certificate request of a node. *pki.CA is one.
type Signer interface {
	SignNode(requestPEM []byte, node string, addresses []string, now time.Time) (certPEM []byte, err error)
}

// HandlerConfig of the server's side.
type HandlerConfig struct {
	Signer Signer
	// CAPEM is the authority's certificate.
	CAPEM []byte
	// Tokens are those that let nodes join.
	Tokens []pki.Token
	// GossipKey is handed to every node that joins.
	GossipKey []byte
	// Servers are all servers of the cluster: no node gets their names and addresses.
	Servers []pki.Server
	// Logger hears of every machine that joins or is refused. Nil: nobody does.
	Logger *slog.Logger
}

type handler struct {
	config   HandlerConfig
	reserved []string
	log      *slog.Logger
}

// NewHandler returns the server's side. It needs no authentication in front of it.
func NewHandler(config HandlerConfig) http.Handler {
	h := &handler{config: config, log: config.Logger}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	for _, server := range config.Servers {
		h.reserved = append(h.reserved, server.Names()...)
	}
	return h
}

// ServeHTTP implements http.Handler. Refusals are Kubernetes Status objects.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, node, err := h.join(w, r)
	if err != nil {
		h.log.Warn("a machine may not join", "node", node, "address", r.RemoteAddr, "error", err)
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
	var asked request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMaxBytes)).Decode(&asked); err != nil {
		return answer, "", apierrors.NewBadRequest("the body is not a join request in JSON of at most 64 KiB: " + err.Error())
	}
	if !h.knows(asked.Token) {
		return answer, asked.NodeName, apierrors.NewUnauthorized(ErrTokenRefused.Error())
	}
	if slices.Contains(h.reserved, asked.NodeName) {
		return answer, asked.NodeName, newRefusal(http.StatusForbidden, metav1.StatusReasonForbidden,
			"the node name "+asked.NodeName+" is that of a server: start the agent with another --name")
	}
	certificate, err := h.config.Signer.SignNode([]byte(asked.CSRPEM), asked.NodeName, h.allowed(asked.Addresses), time.Now())
	if errors.Is(err, pki.ErrBadRequest) {
		return answer, asked.NodeName, apierrors.NewBadRequest(err.Error())
	}
	if err != nil {
		return answer, asked.NodeName, apierrors.NewInternalError(err)
	}
	return response{
		CertPEM: string(certificate), CAPEM: string(h.config.CAPEM),
		GossipKey: base64.StdEncoding.EncodeToString(h.config.GossipKey),
	}, asked.NodeName, nil
}

// knows compares with every token, so that the time tells nothing.
func (h *handler) knows(text string) bool {
	token, err := pki.ParseToken(text)
	if err != nil {
		return false
	}
	known := false
	for _, accepted := range h.config.Tokens {
		if token.Equal(accepted) {
			known = true
		}
	}
	return known
}

// allowed drops addresses by which a server is reached: an agent may run beside one, and
// servers dial nodes by their name.
func (h *handler) allowed(addresses []string) []string {
	kept := slices.DeleteFunc(slices.Clone(addresses), func(address string) bool { return slices.Contains(h.reserved, address) })
	return kept[:min(len(kept), addressesMax)]
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
