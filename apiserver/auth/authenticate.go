package auth

import (
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// ErrCertificateExpired says that a client certificate has run out during its connection.
var ErrCertificateExpired = errors.New("the client certificate has expired: renew it and connect again")

// Servers reports whether a verified chain is that of a server (trust.CA.IsServer). Nil: nobody is one.
type Servers func(chain []*x509.Certificate) bool

// NewAuthenticator tries further authenticators (tokens) after the client certificate,
// and the anonymous user last, where admits is nil or agrees. Its listener must verify client certificates
// (trust.Identity.ServerConfig); a request none of them knows must be answered with 401. Only whom servers
// knows by a certificate is in the servers' group: one who has it in another way is refused.
func NewAuthenticator(servers Servers, admits func(*http.Request) bool, further ...authenticator.Request) authenticator.Request {
	return NewJudgedAuthenticator(time.Now, nil, nil, servers, admits, further...)
}

// NewJudgedAuthenticator is NewAuthenticator, but whom judge knows to be revoked is nobody, nor is a node with another key than keys know,
// or without a Node: it fails with a *revocation.Error, ErrNodeKey or ErrNoNode. Certificates end by now.
func NewJudgedAuthenticator(
	now func() time.Time, judge *revocation.Judge, keys *NodeKeys, servers Servers, admits func(*http.Request) bool,
	further ...authenticator.Request,
) authenticator.Request {
	byCertificate := func(request *http.Request) (*authenticator.Response, bool, error) {
		return servers.byCertificate(request, now())
	}
	chain := append([]authenticator.Request{authenticator.RequestFunc(byCertificate)}, further...)
	return authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		for _, next := range chain {
			if response, ok, err := next.AuthenticateRequest(request); ok || err != nil {
				if ok && err == nil {
					if err := judged(request, judge, keys, response.User); err != nil {
						return nil, false, err
					}
					connection, _ := request.Context().Value(connectionKey{}).(*connection)
					connection.isNamed(response.User)
				}
				return response, ok, err
			}
		}
		if admits != nil && !admits(request) {
			return nil, false, nil
		}
		return anonymous(request)
	})
}

// byCertificate takes the user from the certificate that the handshake has verified. The
// chain is not verified again: a signature check for each request costs more than most
// reads. Expiry is checked, because connections outlive certificates.
func (servers Servers) byCertificate(request *http.Request, now time.Time) (*authenticator.Response, bool, error) {
	if request.TLS == nil || len(request.TLS.VerifiedChains) == 0 {
		return nil, false, nil
	}
	chain := request.TLS.VerifiedChains[0]
	if now.After(chain[0].NotAfter) {
		return nil, false, ErrCertificateExpired
	}
	connection, _ := request.Context().Value(connectionKey{}).(*connection)
	if known := connection.known(chain[0]); known != nil {
		return known.response, true, nil
	}
	response, ok, err := x509request.CommonNameUserConversion.User(chain)
	if !ok || err != nil {
		return nil, false, err
	}
	if servers != nil && servers(chain) { // also one whose certificate says the group's former name
		response = withGroups(response, trust.GroupServers, user.AllAuthenticated)
	} else if err := refuseReserved(response.User); err != nil {
		return nil, false, err
	} else {
		response = withGroups(response, append(slices.Clone(response.User.GetGroups()), user.AllAuthenticated)...)
	}
	connection.remember(chain[0], response)
	return response, true, nil
}

// withGroups copies: the conversion's user may share its groups with the certificate.
func withGroups(response *authenticator.Response, groups ...string) *authenticator.Response {
	who := response.User
	return &authenticator.Response{Audiences: response.Audiences, User: &user.DefaultInfo{
		Name: who.GetName(), UID: who.GetUID(), Groups: slices.Clone(groups), Extra: who.GetExtra(),
	}}
}

// anonymous names whoever shows nothing; what he may is for the authorizer, and each
// service of the parts says for itself whom it lets in. A request that shows a token no
// authenticator accepted is not anonymous: it is refused.
func anonymous(request *http.Request) (*authenticator.Response, bool, error) {
	if request.Header.Get("Authorization") != "" {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: user.Anonymous, Groups: []string{user.AllUnauthenticated},
	}}, true, nil
}
