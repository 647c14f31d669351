package authconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// issuer vouches for users over TLS, with a certificate that only its own file knows.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuerServer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, Algorithm: "ES256", Use: "sig", KeyID: "1"}}})
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	return i
}

func tell(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// ca is the certificate, indented for a file.
func (i *issuer) ca() string {
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// token is signed by the issuer; claims win over the ordinary ones.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL, "aud": "setpoint", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// section is the issuer's part of a file.
func (i *issuer) section(mappings string) string {
	return fmt.Sprintf(`
- issuer:
    url: %s
    audiences: [setpoint]
    certificateAuthority: |
      %s
%s`, i.URL, i.ca(), mappings)
}

const (
	header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	plain  = `  claimMappings:
    username: {claim: sub, prefix: ""}
`
	withCEL = `  claimValidationRules:
  - expression: claims.team != "guests"
    message: guests stay outside
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
    message: that name is taken
  claimMappings:
    username: {expression: "'corp:' + claims.sub"}
    groups: {expression: "claims.roles"}
    uid: {claim: id}
    extra:
    - {key: example.com/team, valueExpression: claims.team}
`
)

// world is a file, and what is made of it.
type world struct {
	*Authentication
	path string
	said *bytes.Buffer
}

func newWorld(t *testing.T, text string) *world {
	t.Helper()
	w := &world{path: filepath.Join(t.TempDir(), "authentication.yaml"), said: &bytes.Buffer{}}
	w.write(t, text)
	var err error
	w.Authentication, err = New(t.Context(), Config{
		File: w.path, OwnIssuer: "https://own.example", Audiences: []string{"https://own.example"}, Logger: slog.New(slog.NewTextHandler(w.said, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.path, []byte(header+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// await returns when all issuers have answered.
func await(t *testing.T, g *generation) {
	t.Helper()
	for g.unhealthy() != nil {
		if t.Context().Err() != nil {
			t.Fatal(g.unhealthy())
		}
		runtime.Gosched()
	}
}

// user is who the token says, or "" if nobody.
func (w *world) user(t *testing.T, token string) string {
	t.Helper()
	response, ok, err := w.AuthenticateToken(t.Context(), token)
	if !ok || err != nil {
		return ""
	}
	who := response.User
	return fmt.Sprintf("%s %v %s %v", who.GetName(), who.GetGroups(), who.GetUID(), who.GetExtra())
}

func TestSeveralIssuers(t *testing.T) {
	corp, other, foreign := newIssuerServer(t), newIssuerServer(t), newIssuerServer(t)
	w := newWorld(t, "jwt:"+corp.section(withCEL)+other.section(plain))
	await(t, w.current.Load())
	member := map[string]any{"team": "shop", "roles": []string{"dev", "ops"}, "id": "7"}
	with := func(claim string, value any) map[string]any {
		changed := map[string]any{claim: value}
		for name, v := range member {
			if name != claim {
				changed[name] = v
			}
		}
		return changed
	}
	for name, c := range map[string]struct{ token, want string }{
		"by expressions":     {corp.token(t, member), "corp:jane [dev ops] 7 map[example.com/team:[shop]]"},
		"the other issuer":   {other.token(t, nil), "jane []  map[]"},
		"a rule refuses":     {corp.token(t, with("team", "guests")), ""},
		"for somebody else":  {corp.token(t, with("aud", "other")), ""},
		"too old":            {corp.token(t, with("exp", time.Now().Add(-time.Hour).Unix())), ""},
		"nobody's issuer":    {foreign.token(t, member), ""},
		"another's name":     {foreign.token(t, with("iss", corp.URL)), ""},
		"no token":           {"canary", ""},
		"three parts of air": {"a.b.c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.user(t, c.token); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestAFileThatChanges takes effect when its issuers answer, and only then.
func TestAFileThatChanges(t *testing.T) {
	first, second := newIssuerServer(t), newIssuerServer(t)
	w := newWorld(t, "jwt:"+first.section(plain))
	await(t, w.current.Load())
	look := func() error { // until the issuers have answered
		for {
			err := w.file.Look(t.Context())
			if err == nil || t.Context().Err() != nil || !strings.Contains(err.Error(), "has not answered yet") {
				return err
			}
			runtime.Gosched()
		}
	}
	if err := look(); err != nil || w.user(t, first.token(t, nil)) == "" || w.user(t, second.token(t, nil)) != "" {
		t.Fatalf("before: %v", err)
	}
	w.write(t, "jwt: [{issuer: {}}]")
	if err := look(); err == nil || w.user(t, first.token(t, nil)) == "" {
		t.Fatalf("a file with mistakes: %v", err)
	}
	w.write(t, "jwt:"+second.section(plain))
	if err := look(); err != nil || w.user(t, first.token(t, nil)) != "" || w.user(t, second.token(t, nil)) == "" {
		t.Fatalf("after: %v", err)
	}
	gone := newIssuerServer(t)
	gone.Close()
	w.write(t, "jwt:"+gone.section(plain))
	if err := w.file.Look(t.Context()); err == nil {
		t.Fatal("an issuer that is gone has answered")
	}
	if w.user(t, second.token(t, nil)) == "" || w.user(t, gone.token(t, nil)) != "" || !strings.Contains(w.said.String(), "has not answered yet") {
		t.Errorf("the former issuer must stay until the next one answers: %s", w.said)
	}
}

// TestAnIssuerThatIsGone keeps no server from starting.
func TestAnIssuerThatIsGone(t *testing.T) {
	gone := newIssuerServer(t)
	gone.Close()
	w := newWorld(t, "jwt:"+gone.section(plain))
	if _, ok, _ := w.AuthenticateToken(t.Context(), gone.token(t, nil)); ok {
		t.Error("let in")
	}
	w.warnOfIssuers()
	w.warnOfIssuers()
	if n := strings.Count(w.said.String(), "\n"); n == 0 || n > 2 {
		t.Errorf("told %d times: %s", n, w.said)
	}
}

func TestClassicFlags(t *testing.T) {
	i := newIssuerServer(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags  OIDC
		claims map[string]any
		want   string
	}{
		"by default":       {OIDC{UsernameClaim: "sub"}, nil, i.URL + "#jane []"},
		"a prefix":         {OIDC{UsernameClaim: "sub", UsernamePrefix: "p:"}, nil, "p:jane []"},
		"no prefix":        {OIDC{UsernameClaim: "sub", UsernamePrefix: "-"}, nil, "jane []"},
		"an address":       {OIDC{UsernameClaim: "email"}, map[string]any{"email": "j@example.com"}, "j@example.com []"},
		"groups":           {OIDC{UsernameClaim: "sub", UsernamePrefix: "-", GroupsClaim: "g", GroupsPrefix: "o:"}, map[string]any{"g": []string{"a"}}, "jane [o:a]"},
		"a required claim": {OIDC{UsernameClaim: "sub", UsernamePrefix: "-", RequiredClaims: map[string]string{"x": "y"}}, map[string]any{"x": "z"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags.IssuerURL, c.flags.ClientID, c.flags.CAFile = i.URL, "setpoint", ca
			a, err := New(t.Context(), Config{OIDC: c.flags, OwnIssuer: "https://own.example", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			await(t, a.current.Load())
			got := (&world{Authentication: a}).user(t, i.token(t, c.claims))
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, text := range map[string]string{
		"a field that nobody knows": header + "jwts: []",
		"another kind":              "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: []",
		"no TLS":                    header + "jwt: [{issuer: {url: 'http://a.example', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]",
		"the cluster itself":        header + "jwt: [{issuer: {url: 'https://own.example', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]",
		"no text":                   "{",
	} {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(t.Context(), Config{File: path, OwnIssuer: "https://own.example", Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := (Config{File: path, OwnIssuer: "https://own.example"}).Validate(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the flag is said to be right: %v", name, err)
		}
	}
	if err := (Config{OIDC: OIDC{IssuerURL: "https://a.example", ClientID: "a", UsernameClaim: "sub", CAFile: "/nowhere"}}).Validate(); err == nil {
		t.Error("a CA that is not there: taken")
	}
	if _, err := New(t.Context(), Config{File: "a", OIDC: OIDC{IssuerURL: "https://a.example", ClientID: "a"}}); err == nil {
		t.Error("two sources: taken")
	}
}

// TestStrangers: the file says where somebody without a name may ask, and is read again
// while the server runs.
func TestStrangers(t *testing.T) {
	paths := []string{"/livez", "/readyz", "/api"}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		go w.Run(t.Context())
		for _, c := range []struct {
			text string
			want []string
		}{
			{"", paths},
			{"anonymous: {enabled: false}", nil},
			{"anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}", paths[:2]},
			{"anonymous: {enabled: true, conditions: [{path", paths[:2]}, // a mistake changes nothing
			{"anonymous: {enabled: true}", paths},
		} {
			w.write(t, c.text)
			time.Sleep(2 * reloadInterval)
			synctest.Wait()
			var got []string
			for _, path := range paths {
				if w.AdmitsAnonymous(httptest.NewRequest(http.MethodGet, path, nil)) {
					got = append(got, path)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.text, got, c.want)
			}
		}
		if !strings.Contains(w.said.String(), "was not taken") {
			t.Errorf("the mistake was not told: %s", w.said)
		}
	})
}
