package auth

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// IdentityOf is by what a user may be revoked who makes a request: his name, the key of his certificate, and the id of his token.
func IdentityOf(request *http.Request, who user.Info) revocation.Identity {
	id := revocation.OfUser(who.GetName(), who.GetExtra())
	id.Key = keyOf(request)
	if request.TLS != nil && len(request.TLS.VerifiedChains) > 0 {
		id.Authority = revocation.OfChains(request.TLS.VerifiedChains)
	}
	return id
}

// keyOf is the hash of the key that a request's connection has shown, "" if it has shown none.
func keyOf(request *http.Request) string {
	if request.TLS == nil || len(request.TLS.VerifiedChains) == 0 {
		return ""
	}
	leaf := request.TLS.VerifiedChains[0][0]
	connection, _ := request.Context().Value(connectionKey{}).(*connection)
	if known := connection.known(leaf); known != nil {
		return known.key
	}
	return trust.KeyHash(leaf.RawSubjectPublicKeyInfo)
}

// JudgedTokens knows the users of tokens, but those whom judge knows to be revoked.
func JudgedTokens(judge *revocation.Judge, tokens authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		response, ok, err := tokens.AuthenticateToken(ctx, token)
		if !ok || err != nil {
			return response, ok, err
		}
		if err := judge.Revoked(revocation.OfUser(response.User.GetName(), response.User.GetExtra())); err != nil {
			return nil, false, err
		}
		return response, true, nil
	})
}

// judged says why a user whom a request has proved to be counts no more.
func judged(request *http.Request, judge *revocation.Judge, keys *NodeKeys, who user.Info) error {
	id := IdentityOf(request, who)
	if err := judge.Revoked(id); err != nil {
		return err
	}
	return keys.Judge(request, id)
}
