package tokens

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// FuzzToken: no text but the issued one is anybody's.
func FuzzToken(f *testing.F) {
	w := newWorld(f)
	issued := w.issue(Binding{}, time.Hour)
	f.Add(issued)
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.")
	for _, claims := range []string{
		`{"iss":"https://kubernetes.default.svc.cluster.local","sub":"system:serviceaccount:x:robot","aud":["a"],"exp":9999999999}`,
		`{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"x","exp":1e999}`,
		`{"iss":"https://kubernetes.default.svc","aud":{},"kubernetes.io":{"namespace":1}}`,
	} {
		f.Add(encode(`{"alg":"ES256","kid":"k"}`) + "." + encode(claims) + "." + encode(strings.Repeat("s", 64)))
	}
	f.Fuzz(func(t *testing.T, token string) {
		if who, ok, _ := w.tokens.AuthenticateToken(t.Context(), token); ok && token != issued {
			t.Errorf("%q is the token of %s", token, who.User.GetName())
		}
	})
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
