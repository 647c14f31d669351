package auth

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// NewTokens authenticates bearer tokens with one authenticator after the other, and adds the group
// system:authenticated. A token whose user would be in the servers' group is refused, whoever issued it.
func NewTokens(kinds ...authenticator.Token) authenticator.Token {
	return group.NewTokenGroupAdder(unreserved{tokenunion.New(kinds...)}, []string{user.AllAuthenticated})
}

// unreserved refuses users in the servers' group.
type unreserved struct{ next authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (u unreserved) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := u.next.AuthenticateToken(ctx, token)
	if !ok || err != nil {
		return response, ok, err
	}
	if err := refuseReserved(response.User); err != nil {
		return nil, false, err
	}
	return response, true, nil
}

// ErrReservedGroup says that somebody who is no server says to be in the servers' group.
var ErrReservedGroup = errors.New("the user is in a group that stands for the cluster's servers alone")

func refuseReserved(who user.Info) error {
	if slices.ContainsFunc(who.GetGroups(), trust.ReservedGroup) {
		return ErrReservedGroup
	}
	return nil
}

// Bearer finds the token of a request: in its header, or, for browsers that open a
// WebSocket, in its protocols.
func Bearer(tokens authenticator.Token) authenticator.Request {
	return requestunion.NewFailOnError(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
}
