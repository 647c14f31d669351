package trust

import (
	"encoding/pem"
	"fmt"
	"time"
)

// ProxyAuthority is an authority for front proxies.
type ProxyAuthority struct{ *CA }

// ID is the hash of its certificate's key.
func (a ProxyAuthority) ID() string { return a.Pin() }

// NewFrontProxyRing has the authority that follows from the cluster's. What it has beside that ends with the process: servers learn it anew
// from the store.
func NewFrontProxyRing(ca *CA) (*Ring[ProxyAuthority], error) {
	first, err := ca.FrontProxy()
	if err != nil {
		return nil, err
	}
	text, err := proxyAuthorityText(ProxyAuthority{first})
	if err != nil {
		return nil, err
	}
	return ringOf(frontProxyForm, "", text)
}

var frontProxyForm = ringForm[ProxyAuthority]{what: "front-proxy authority", parse: parseProxyAuthorities, encode: encodeProxyAuthorities}

// MakeFrontProxy makes the text of an authority, for Ring.Add, and how it will be called.
func MakeFrontProxy(now time.Time) (text []byte, id string, err error) {
	root, err := NewCA(now)
	if err != nil {
		return nil, "", err
	}
	fresh, err := root.FrontProxy()
	if err != nil {
		return nil, "", err
	}
	text, err = proxyAuthorityText(ProxyAuthority{fresh})
	return text, ProxyAuthority{fresh}.ID(), err
}

func proxyAuthorityText(a ProxyAuthority) ([]byte, error) {
	key, err := a.KeyPEM()
	return append(a.CertPEM(), key...), err
}

func encodeProxyAuthorities(all []ProxyAuthority, _ bool) (text []byte, err error) {
	for _, a := range all {
		one, err := proxyAuthorityText(a)
		if err != nil {
			return nil, err
		}
		text = append(text, one...)
	}
	return text, nil
}

// parseProxyAuthorities reads pairs of a certificate and its key.
func parseProxyAuthorities(text []byte) (all []ProxyAuthority, rotated bool, err error) {
	for rest := text; ; {
		var certificate, key *pem.Block
		if certificate, rest = pem.Decode(rest); certificate == nil {
			break
		}
		if key, rest = pem.Decode(rest); key == nil {
			return nil, false, fmt.Errorf("%w: a certificate without its key", ErrBadPEM)
		}
		ca, err := ParseCA(pem.EncodeToMemory(certificate), pem.EncodeToMemory(key))
		if err != nil {
			return nil, false, err
		}
		all = append(all, ProxyAuthority{ca})
	}
	if len(all) == 0 {
		return nil, false, fmt.Errorf("%w: %s", ErrBadPEM, blockKey)
	}
	return all, false, nil
}
