package tokens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Paths of the documents by which others check tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeySetPath        = "/openid/v1/jwks"
)

// DocumentLife is how long clients may keep the documents, as upstream: somebody else may learn of a key that was added so much later.
const DocumentLife = time.Hour

// configuration is the part of OpenID Connect discovery that checking a token needs.
type configuration struct {
	Issuer        string   `json:"issuer"`
	KeySet        string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// Documents returns the documents by their paths. The keys are told to be at the issuer's own
// name: whoever found the first document there, such as a pod, reaches them too, and all servers say the same.
func (i *Issuer) Documents() (map[string]http.Handler, error) {
	about, err := json.Marshal(configuration{
		Issuer: i.name, KeySet: strings.TrimSuffix(i.name, "/") + KeySetPath,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: []string{string(algorithm)},
	})
	if err != nil {
		return nil, err
	}
	if _, err := json.Marshal(i.keys().public); err != nil {
		return nil, err
	}
	return map[string]http.Handler{
		ConfigurationPath: document{"application/json", func() []byte { return about }},
		KeySetPath:        document{"application/jwk-set+json", i.keySet},
	}, nil
}

// keySet are the keys as they are now.
func (i *Issuer) keySet() []byte {
	keys, _ := json.Marshal(i.keys().public) // it has public keys of one curve, which can be written
	return keys
}

type document struct {
	contentType string
	text        func() []byte
}

// ServeHTTP implements http.Handler.
func (d document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", d.contentType)
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(DocumentLife.Seconds())))
	_, _ = w.Write(d.text()) // a client that went away needs no answer
}
