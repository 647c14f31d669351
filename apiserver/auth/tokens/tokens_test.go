package tokens

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// world is a store with an account and what tokens are bound to.
type world struct {
	t       testing.TB
	store   *storage.Store
	issuer  *Issuer
	tokens  *Authenticator
	account *corev1.ServiceAccount
	pod     *corev1.Pod
	secret  *corev1.Secret
	node    *corev1.Node
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newWorld(t testing.TB) *world {
	t.Helper()
	keys, err := NewKeys(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All()), issuer: NewIssuer(keys.Now(), DefaultIssuer)}
	w.tokens = NewAuthenticator(w.issuer, w.store)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("uid-of-" + name)}
	}
	w.account = &corev1.ServiceAccount{ObjectMeta: meta("robot")}
	w.pod = &corev1.Pod{ObjectMeta: meta("web")}
	w.secret = &corev1.Secret{ObjectMeta: meta("kept"), Type: corev1.SecretTypeServiceAccountToken}
	w.node = &corev1.Node{ObjectMeta: meta("n1")}
	w.node.Namespace = ""
	w.put(accountsResource, w.account)
	w.put(podsResource, w.pod)
	w.put(secretsResource, w.secret)
	w.put(nodesResource, w.node)
	return w
}

func (w *world) put(gvr schema.GroupVersionResource, o resource.Object) {
	w.t.Helper()
	w.write(gvr, o, &storage.Change{Object: o.DeepCopyObject().(resource.Object)})
}

func (w *world) remove(gvr schema.GroupVersionResource, o resource.Object) {
	w.t.Helper()
	w.write(gvr, o, &storage.Change{Delete: true})
}

func (w *world) write(gvr schema.GroupVersionResource, o resource.Object, change *storage.Change) {
	w.t.Helper()
	_, err := w.store.Table(gvr).Write(w.t.Context(), o.GetNamespace(), o.GetName(), func(*storage.View) (*storage.Change, error) { return change, nil })
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) issue(bound Binding, life time.Duration, audiences ...string) string {
	w.t.Helper()
	if audiences == nil {
		audiences = w.issuer.Audiences()
	}
	token, err := w.issuer.Issue(w.account, bound, audiences, life, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func TestWhoseATokenIs(t *testing.T) {
	w := newWorld(t)
	response, ok, err := w.tokens.AuthenticateToken(t.Context(), w.issue(Binding{Pod: w.pod, Node: w.node}, time.Hour))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff([]string{"system:serviceaccounts", "system:serviceaccounts:x"}, response.User.GetGroups()); diff != "" {
		t.Error(diff)
	}
	if response.User.GetName() != "system:serviceaccount:x:robot" || response.User.GetUID() != "uid-of-robot" {
		t.Errorf("user %s, %s", response.User.GetName(), response.User.GetUID())
	}
	extra := response.User.GetExtra()
	if id := extra["authentication.kubernetes.io/credential-id"]; len(id) != 1 || !strings.HasPrefix(id[0], "JTI=") {
		t.Errorf("credential id %v", id)
	}
	delete(extra, "authentication.kubernetes.io/credential-id")
	want := map[string][]string{
		"authentication.kubernetes.io/pod-name": {"web"}, "authentication.kubernetes.io/pod-uid": {"uid-of-web"},
		"authentication.kubernetes.io/node-name": {"n1"}, "authentication.kubernetes.io/node-uid": {"uid-of-n1"},
	}
	if diff := cmp.Diff(want, extra); diff != "" {
		t.Error(diff)
	}
}

// TestATokenEndsWithWhatItIsBoundTo, at once, although its signature is remembered.
func TestATokenEndsWithWhatItIsBoundTo(t *testing.T) {
	for name, c := range map[string]struct {
		bind func(w *world) Binding
		end  func(w *world)
		ends bool
	}{
		"nothing happens": {func(*world) Binding { return Binding{} }, func(*world) {}, false},
		"account deleted": {func(*world) Binding { return Binding{} }, func(w *world) { w.remove(accountsResource, w.account) }, true},
		"account made anew": {func(*world) Binding { return Binding{} }, func(w *world) {
			w.remove(accountsResource, w.account)
			w.account.UID = "another"
			w.put(accountsResource, w.account)
		}, true},
		"pod deleted":              {func(w *world) Binding { return Binding{Pod: w.pod} }, func(w *world) { w.remove(podsResource, w.pod) }, true},
		"another's pod deleted":    {func(w *world) Binding { return Binding{} }, func(w *world) { w.remove(podsResource, w.pod) }, false},
		"secret deleted":           {func(w *world) Binding { return Binding{Secret: w.secret} }, func(w *world) { w.remove(secretsResource, w.secret) }, true},
		"node deleted":             {func(w *world) Binding { return Binding{Node: w.node} }, func(w *world) { w.remove(nodesResource, w.node) }, true},
		"the pod's node deleted":   {func(w *world) Binding { return Binding{Pod: w.pod, Node: w.node} }, func(w *world) { w.remove(nodesResource, w.node) }, false},
		"pod in its grace":         {func(w *world) Binding { return Binding{Pod: w.pod} }, func(w *world) { w.deletePod(time.Now()) }, false},
		"pod long after its grace": {func(w *world) Binding { return Binding{Pod: w.pod} }, func(w *world) { w.deletePod(time.Now().Add(-2 * clockLeeway)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			token := w.issue(c.bind(w), time.Hour)
			if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); !ok || err != nil {
				t.Fatal(ok, err)
			}
			c.end(w)
			if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); ok == c.ends || c.ends && !errors.Is(err, ErrInvalidated) {
				t.Errorf("good %v, %v", ok, err)
			}
		})
	}
}

func (w *world) deletePod(at time.Time) {
	w.pod.DeletionTimestamp = &metav1.Time{Time: at}
	w.put(podsResource, w.pod)
}

func TestTokensExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		token := w.issue(Binding{}, time.Hour)
		lenient := w.issue(Binding{Pod: w.pod}, lenientLife)
		strict := w.issue(Binding{}, lenientLife)
		time.Sleep(time.Hour)
		if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); !ok {
			t.Errorf("within the leeway: %v", err)
		}
		time.Sleep(2 * clockLeeway)
		for _, old := range []string{token, strict} {
			if _, ok, err := w.tokens.AuthenticateToken(t.Context(), old); ok || !errors.Is(err, ErrExpired) {
				t.Errorf("after its life: %v, %v", ok, err)
			}
		}
		if _, ok, err := w.tokens.AuthenticateToken(t.Context(), lenient); !ok {
			t.Errorf("the token of a pod that never reads it again: %v", err)
		}
		time.Sleep(extendedLife)
		if _, ok, _ := w.tokens.AuthenticateToken(t.Context(), lenient); ok {
			t.Error("a year later it is still good")
		}
	})
}

func TestAudiences(t *testing.T) {
	w := newWorld(t)
	vault := w.issue(Binding{}, time.Hour, "vault", "other")
	if _, ok, err := w.tokens.AuthenticateToken(t.Context(), vault); ok || err == nil {
		t.Errorf("the API took a token for others: %v", err)
	}
	ctx := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"vault", "third"})
	response, ok, err := w.tokens.AuthenticateToken(ctx, vault)
	if !ok || err != nil || cmp.Diff(authenticator.Audiences{"vault"}, response.Audiences) != "" {
		t.Errorf("%v, %v, %v", response, ok, err)
	}
}

func TestForgedTokens(t *testing.T) {
	w := newWorld(t)
	good := w.issue(Binding{}, time.Hour)
	parts := strings.Split(good, ".")
	foreignKeys, err := NewKeys(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := NewIssuer(foreignKeys.Now(), DefaultIssuer).Issue(w.account, Binding{}, w.issuer.audiences, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewIssuer(w.issuer.keys, "https://elsewhere.example").Issue(w.account, Binding{}, w.issuer.audiences, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	endless, err := w.issuer.sign(DefaultIssuer, &claims{Kubernetes: &kubernetesClaims{Namespace: "x", Account: *referTo(w.account)},
		Claims: jwt.Claims{Subject: "system:serviceaccount:x:robot"}})
	if err != nil {
		t.Fatal(err)
	}
	unlike := newClaims(w.account, Binding{}, w.issuer.audiences, time.Hour, 0, time.Now())
	unlike.Subject = "system:serviceaccount:kube-system:root"
	mixed, err := w.issuer.sign(DefaultIssuer, unlike)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token   string
		refused bool // else it is left to other authenticators
	}{
		"another's key":         {foreign, true},
		"another issuer":        {other, false},
		"without a signature":   {parts[0] + "." + parts[1] + ".", true},
		"algorithm none":        {"eyJhbGciOiJub25lIn0." + parts[1] + ".", true},
		"without an end":        {endless, true},
		"claims of two minds":   {mixed, true},
		"no token":              {"abc", false},
		"no payload":            {"a.b.c", false},
		"a word":                {"", false},
		"endless text":          {strings.Repeat("a", MaxTokenBytes) + ".b.c", false},
		"cut":                   {good[:len(good)-2], true},
		"more behind its end":   {good + "AA", true},
		"a legacy token's name": {strings.Replace(good, parts[2], parts[0], 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok, err := w.tokens.AuthenticateToken(t.Context(), c.token); ok || (err != nil) != c.refused {
				t.Errorf("good %v, %v", ok, err)
			}
		})
	}
}

func TestLegacyTokens(t *testing.T) {
	w := newWorld(t)
	token, err := w.issuer.IssueLegacy(w.account, w.secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); ok || !errors.Is(err, ErrInvalidated) {
		t.Errorf("a token that its secret does not hold: %v, %v", ok, err)
	}
	w.secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
	w.put(secretsResource, w.secret)
	response, ok, err := w.tokens.AuthenticateToken(t.Context(), token)
	if !ok || err != nil || response.User.GetName() != "system:serviceaccount:x:robot" {
		t.Fatalf("%v, %v, %v", response, ok, err)
	}
	w.secret.Labels = map[string]string{invalidSinceLabel: "2026-01-01"}
	w.put(secretsResource, w.secret)
	if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); ok || !errors.Is(err, ErrInvalidated) {
		t.Errorf("a token marked as invalid: %v, %v", ok, err)
	}
	w.remove(secretsResource, w.secret)
	if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); ok || !errors.Is(err, ErrInvalidated) {
		t.Errorf("a token whose secret is gone: %v, %v", ok, err)
	}
}

// TestOthersCanCheckTokens by the published documents alone, also after the key was changed.
func TestOthersCanCheckTokens(t *testing.T) {
	w := newWorld(t)
	former := newKey(t)
	formerKeys, err := NewKeys(former)
	if err != nil {
		t.Fatal(err)
	}
	old, err := NewIssuer(formerKeys.Now(), DefaultIssuer).Issue(w.account, Binding{}, w.issuer.audiences, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeys(newKey(t), &former.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	issuer := NewIssuer(keys.Now(), DefaultIssuer)
	if _, ok, err := NewAuthenticator(issuer, w.store).AuthenticateToken(t.Context(), old); !ok {
		t.Errorf("a token of the former key: %v", err)
	}
	documents, err := issuer.Documents()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, into any) {
		t.Helper()
		recorder := httptest.NewRecorder()
		documents[path].ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
		if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	var about configuration
	get(ConfigurationPath, &about)
	if about.Issuer != DefaultIssuer || about.KeySet != "https://kubernetes.default.svc.cluster.local/openid/v1/jwks" {
		t.Errorf("%+v", about)
	}
	var set jose.JSONWebKeySet
	get(KeySetPath, &set)
	for _, token := range []string{old, mustIssue(t, issuer, w.account)} {
		parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		if found := set.Key(parsed.Headers[0].KeyID); len(found) != 1 || !found[0].IsPublic() || parsed.Claims(found[0].Key, &claims{}) != nil {
			t.Errorf("key %s does not check its token", parsed.Headers[0].KeyID)
		}
	}
}

// TestTheKeysAreBelowTheIssuer: envtest's issuer is the address of a server, with a slash.
func TestTheKeysAreBelowTheIssuer(t *testing.T) {
	keys, err := NewKeys(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := NewIssuer(keys.Now(), "https://127.0.0.1:6443/").Documents()
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	documents[ConfigurationPath].ServeHTTP(recorder, httptest.NewRequest("GET", ConfigurationPath, nil))
	var about configuration
	if err := json.Unmarshal(recorder.Body.Bytes(), &about); err != nil {
		t.Fatal(err)
	}
	if about.Issuer != "https://127.0.0.1:6443/" || about.KeySet != "https://127.0.0.1:6443/openid/v1/jwks" {
		t.Errorf("%+v", about)
	}
}

func mustIssue(t *testing.T, issuer *Issuer, account *corev1.ServiceAccount) string {
	t.Helper()
	token, err := issuer.Issue(account, Binding{}, issuer.audiences, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// keyOf is which key a token says it was signed with.
func keyOf(token string) string {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{algorithm})
	if err != nil {
		return err.Error()
	}
	return parsed.Headers[0].KeyID
}

// TestKeysAreRotatedWhileTokensAreInUse: the tokens of each key are good as long as that key is among the others, and no longer, even those
// whose signature was checked before. What is published is what is good.
func TestKeysAreRotatedWhileTokensAreInUse(t *testing.T) {
	w := newWorld(t)
	old, fresh := newKey(t), newKey(t)
	var keys *Keys
	issuer := NewIssuer(func() *Keys { return keys }, DefaultIssuer)
	rotate := func(signing *ecdsa.PrivateKey, others ...*ecdsa.PublicKey) {
		t.Helper()
		var err error
		if keys, err = NewKeys(signing, others...); err != nil {
			t.Fatal(err)
		}
	}
	rotate(old)
	authenticator := NewAuthenticator(issuer, w.store)
	documents, err := issuer.Documents()
	if err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		_, ok, _ := authenticator.AuthenticateToken(t.Context(), token)
		return ok
	}
	check := func(step string, published int, tokens map[string]bool) {
		t.Helper()
		for token, want := range tokens {
			if got := good(token); got != want {
				t.Errorf("%s: a token of key %s: %v, want %v", step, keyOf(token), got, want)
			}
		}
		var set jose.JSONWebKeySet
		recorder := httptest.NewRecorder()
		documents[KeySetPath].ServeHTTP(recorder, httptest.NewRequest("GET", KeySetPath, nil))
		if err := json.Unmarshal(recorder.Body.Bytes(), &set); err != nil || len(set.Keys) != published {
			t.Errorf("%s: %d keys are published, want %d (%v)", step, len(set.Keys), published, err)
		}
	}
	first := mustIssue(t, issuer, w.account)
	check("before", 1, map[string]bool{first: true})
	rotate(old, &fresh.PublicKey)
	check("added", 2, map[string]bool{first: true, mustIssue(t, issuer, w.account): true})
	misnamed, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: fresh, KeyID: keyOf(first)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if good(mustIssue(t, NewIssuer((&Keys{signer: misnamed}).Now(), DefaultIssuer), w.account)) {
		t.Error("a token that names another key than the one that has signed it is good")
	}
	rotate(fresh, &old.PublicKey)
	second := mustIssue(t, issuer, w.account)
	if keyOf(first) == keyOf(second) || keyOf(second) != keys.public.Keys[0].KeyID {
		t.Errorf("keys %q and %q", keyOf(first), keyOf(second))
	}
	check("used", 2, map[string]bool{first: true, second: true})
	rotate(fresh)
	check("dropped", 1, map[string]bool{first: false, second: true})
}
