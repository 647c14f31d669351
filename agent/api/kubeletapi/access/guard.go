package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/sampled"
)

const (
	// How long answers are kept, as upstream's. Who was not known is asked for again after tokenUnknownTTL.
	tokenTTLDefault   = 2 * time.Minute
	tokenUnknownTTL   = 10 * time.Second
	allowedTTLDefault = 5 * time.Minute
	deniedTTLDefault  = 30 * time.Second
	// answersMax are kept of each kind; the oldest go.
	answersMax = 1 << 10
	// reviewsMax questions are under way at most.
	reviewsMax = 16
	// reviewTimeMax bounds one.
	reviewTimeMax = 10 * time.Second
	// tokenBytesMax is more than any token has.
	tokenBytesMax = 16 << 10
)

// Config of a Guard.
type Config struct {
	Node   string
	Client kubernetes.Interface
	// TokenTTL, AllowedTTL and DeniedTTL are how long answers are kept; 0 is upstream's.
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
	// ServersOnly says which paths are the servers' alone; Nodes, which other nodes may ask for too, and users may not. Nil: none.
	ServersOnly, Nodes func(path string) bool
	// NoTokens refuses everybody but servers.
	NoTokens bool
	// Revoked knows who is shut out, whatever the servers said of his token before. Nil: nobody is.
	Revoked *revocation.Judge
	Logger  *slog.Logger
}

// Guard decides who may ask. It is safe for concurrent use.
type Guard struct {
	Config
	users   *cache.LRUExpireCache // by tokenKey: *authenticationv1.UserInfo, nil of one that the servers do not know
	access  *cache.LRUExpireCache // by accessKey: bool
	reviews chan struct{}
	// failures chooses which clients are logged that could not be looked up.
	failures sampled.Sampler
}

// tokenKey is a token's hash.
type tokenKey [sha256.Size]byte

type accessKey struct {
	token             tokenKey
	verb, subresource string
}

// New makes a Guard that has asked nothing yet.
func New(c Config) *Guard {
	c.TokenTTL = cmp.Or(c.TokenTTL, tokenTTLDefault)
	c.AllowedTTL, c.DeniedTTL = cmp.Or(c.AllowedTTL, allowedTTLDefault), cmp.Or(c.DeniedTTL, deniedTTLDefault)
	return &Guard{
		Config: c, users: cache.NewLRUExpireCache(answersMax), access: cache.NewLRUExpireCache(answersMax),
		reviews: make(chan struct{}, reviewsMax),
	}
}

// Handler passes on what the client may ask. That a certificate is a server's or a node's was found out when the connection began.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := certified(r.TLS)
		err := g.Revoked.Revoked(who)
		switch forNodes := g.Nodes != nil && g.Nodes(r.URL.Path); {
		case err != nil:
			err = &refusal{http.StatusUnauthorized, err.Error()}
		case isNode(r.TLS):
			if !forNodes {
				err = errServersOnly
			}
		case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		case forNodes:
			err = errNodesOnly
		default:
			who, err = g.admit(r)
		}
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		ctx, end := context.WithCancel(r.Context())
		defer end()
		defer g.Revoked.Opened(who, end)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// certified is whose certificate the connection has shown; nobody's if it has shown none.
func certified(state *tls.ConnectionState) revocation.Identity {
	if state == nil {
		return revocation.Identity{}
	}
	return revocation.OfConnection(*state)
}

// nodesGroup is that of nodes' certificates; a server's is never in it.
const nodesGroup = "system:nodes"

func isNode(state *tls.ConnectionState) bool {
	return state != nil && len(state.VerifiedChains) > 0 && slices.Contains(state.VerifiedChains[0][0].Subject.Organization, nodesGroup)
}

// refusal is an error with its HTTP status.
type refusal struct {
	code int
	text string
}

func (e *refusal) Error() string { return e.text }

var (
	errUnauthorized = &refusal{http.StatusUnauthorized, "Unauthorized"}
	errBusy         = &refusal{http.StatusTooManyRequests, "too many clients are being looked up: try again"}
	errNodesOnly    = &refusal{http.StatusForbidden, "Forbidden: this is for the cluster's servers and nodes"}
	errServersOnly  = &refusal{http.StatusForbidden, "Forbidden: this is for the cluster's servers"}
)

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refused, ok := errors.AsType[*refusal](err)
	if !ok { // the servers do not answer
		if skipped, tell := g.failures.Tell(sampled.Source(r.RemoteAddr), time.Now()); tell {
			g.Logger.Warn("a client of this node could not be looked up", "path", r.URL.Path, "err", err, "skipped", skipped)
		}
		refused = &refusal{http.StatusInternalServerError, "the servers could not be asked who this is"}
	}
	w.Header().Set("Connection", "close") // connections are for those who may ask
	http.Error(w, refused.text, refused.code)
}

// admit says who asks by a token, if he may.
func (g *Guard) admit(r *http.Request) (who revocation.Identity, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if g.NoTokens || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > tokenBytesMax {
		return who, errUnauthorized
	}
	key := tokenKey(sha256.Sum256([]byte(token)))
	user, err := g.user(r.Context(), key, token)
	if err != nil {
		return who, err
	}
	if user == nil {
		return who, errUnauthorized
	}
	who = revocation.OfUser(user.Username, user.Extra)
	if err := g.Revoked.Revoked(who); err != nil {
		return who, &refusal{http.StatusUnauthorized, err.Error()}
	}
	if g.ServersOnly(r.URL.Path) {
		return who, errServersOnly
	}
	list := attributes(g.Node, r)
	for i := range list {
		if allowed, err := g.allowed(r.Context(), key, user, &list[i]); err != nil || allowed {
			return who, err
		}
	}
	return who, &refusal{http.StatusForbidden, forbidden(user.Username, &list[0])}
}

func forbidden(user string, a *authorizationv1.ResourceAttributes) string {
	return fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=[%s])", user, a.Verb, a.Subresource)
}

// user of a token; nil if the servers do not know it.
func (g *Guard) user(ctx context.Context, key tokenKey, token string) (*authenticationv1.UserInfo, error) {
	if known, ok := g.users.Get(key); ok {
		return known.(*authenticationv1.UserInfo), nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	err := g.ask(ctx, func(ctx context.Context) (err error) {
		review, err = g.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if !review.Status.Authenticated {
		g.users.Add(key, (*authenticationv1.UserInfo)(nil), tokenUnknownTTL)
		return nil, nil
	}
	g.users.Add(key, &review.Status.User, g.TokenTTL)
	return &review.Status.User, nil
}

func (g *Guard) allowed(
	ctx context.Context, token tokenKey, user *authenticationv1.UserInfo, a *authorizationv1.ResourceAttributes,
) (bool, error) {
	key := accessKey{token, a.Verb, a.Subresource}
	if known, ok := g.access.Get(key); ok {
		return known.(bool), nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: a, User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for name, values := range user.Extra {
		review.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	err := g.ask(ctx, func(ctx context.Context) (err error) {
		review, err = g.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return false, err
	}
	ttl := g.DeniedTTL
	if review.Status.Allowed {
		ttl = g.AllowedTTL
	}
	g.access.Add(key, review.Status.Allowed, ttl)
	return review.Status.Allowed, nil
}

// ask does not wait for its turn: a client without rights must not keep others waiting.
func (g *Guard) ask(ctx context.Context, question func(context.Context) error) error {
	select {
	case g.reviews <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-g.reviews }()
	ctx, cancel := context.WithTimeout(ctx, reviewTimeMax)
	defer cancel()
	return question(ctx)
}
