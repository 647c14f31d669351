package access

import (
	"crypto/ecdsa"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// followKeys returns the keys of a ring as the judges of tokens want them: made once for each list of the ring.
func followKeys(ring *trust.Ring[trust.AccountKey]) (func() *tokens.Keys, error) {
	type made struct {
		of   *[]trust.AccountKey
		keys *tokens.Keys
	}
	var last atomic.Pointer[made]
	list := ring.Now()
	keys, err := tokenKeys(*list)
	last.Store(&made{list, keys})
	return func() *tokens.Keys {
		newest, list := last.Load(), ring.Now()
		if newest.of == list {
			return newest.keys
		}
		keys, err := tokenKeys(*list)
		if err != nil { // a ring has keys of one kind alone: some other than those of the start do not fail
			return newest.keys
		}
		last.Store(&made{list, keys})
		return keys
	}, err
}

func tokenKeys(list []trust.AccountKey) (*tokens.Keys, error) {
	var others []*ecdsa.PublicKey
	for _, key := range list[1:] {
		others = append(others, &key.PublicKey)
	}
	return tokens.NewKeys(list[0].PrivateKey, others...)
}
