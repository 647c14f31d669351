package csi

import (
	"context"
	"encoding/json"
	"time"
)

// tokensKey is where a driver finds the tokens of the pod's service account.
const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// tokenSeconds is how long a token is good for if the driver does not say.
const tokenSeconds = int64(time.Hour / time.Second)

// TokenSource issues a token for an audience, valid for about seconds, or hands out an earlier one with a good part of its life left.
type TokenSource func(ctx context.Context, audience string, seconds int64) (token string, expires time.Time, err error)

// token is one, in upstream's form.
type token struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expirationTimestamp"`
}

// tokens are those that the driver asks for, by audience; nil if it asks for none.
func (t *task) tokens(ctx context.Context) (map[string]string, error) {
	if len(t.info.tokens) == 0 {
		return nil, nil
	}
	all := map[string]token{}
	for _, request := range t.info.tokens {
		seconds := tokenSeconds
		if request.ExpirationSeconds != nil {
			seconds = *request.ExpirationSeconds
		}
		issued, expires, err := t.Token(ctx, request.Audience, seconds)
		if err != nil {
			return nil, err
		}
		all[request.Audience] = token{issued, expires.UTC()}
	}
	data, err := json.Marshal(all)
	return map[string]string{tokensKey: string(data)}, err
}
