package auth

import (
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
)

// NewTokens authenticates bearer tokens with one authenticator after the other, and adds the group
// system:authenticated.
func NewTokens(kinds ...authenticator.Token) authenticator.Token {
	return group.NewTokenGroupAdder(tokenunion.New(kinds...), []string{user.AllAuthenticated})
}

// Bearer finds the token of a request: in its header, or, for browsers that open a
// WebSocket, in its protocols.
func Bearer(tokens authenticator.Token) authenticator.Request {
	return requestunion.NewFailOnError(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
}
