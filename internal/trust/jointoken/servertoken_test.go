package jointoken

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// servers is a cluster with one token for two servers.
type servers struct {
	client *fake.Clientset
	ca     *trust.CA
	token  tokens.Token
	made   time.Time
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{client: fake.NewClientset(), made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var err error
	if s.ca, err = trust.NewCA(s.made); err != nil {
		t.Fatal(err)
	}
	made, err := CreateServer(t.Context(), s.client, s.ca, Wanted{TTL: time.Hour, Nodes: 2}, s.made)
	if err != nil {
		t.Fatal(err)
	}
	if s.token, err = tokens.Parse(made.Token); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *servers) take(t *testing.T, name, address string) error {
	t.Helper()
	return TakeServer(t.Context(), s.client, s.ca, s.token, trust.Server{Name: name, Endpoint: address}, s.made)
}

// TestATokenLetsInSoManyServers: each once, and again from where it was; no two under one name.
func TestATokenLetsInSoManyServers(t *testing.T) {
	s := newServers(t)
	for _, c := range []struct {
		name, address string
		want          error
	}{
		{"b", "b:1", nil},
		{"b", "b:1", nil},
		{"b", "x:1", join.ErrServerNameTaken},
		{"c", "c:1", nil},
		{"d", "d:1", join.ErrNoMoreServers},
		{"b", "b:1", nil},
	} {
		if err := s.take(t, c.name, c.address); !errors.Is(err, c.want) {
			t.Errorf("%s at %s: %v, want %v", c.name, c.address, err, c.want)
		}
	}
	s.made = s.made.Add(askAgain)
	if err := s.take(t, "b", "b:1"); err != nil {
		t.Errorf("it did not get the answer: %v", err)
	}
	s.made = s.made.Add(time.Second)
	if err := s.take(t, "b", "b:1"); !errors.Is(err, join.ErrLetInBefore) {
		t.Errorf("who uses the name of a server of long ago: %v", err)
	}
	listed, err := List(t.Context(), s.client)
	if err != nil || len(listed) != 1 || listed[0].For != ForServers || listed[0].Nodes != 2 || listed[0].NodesMax != 2 {
		t.Errorf("%+v (%v)", listed, err)
	}
}

// TestASecretMakesNoServer: neither who reads the Secret of a token nor who writes one gets in.
func TestASecretMakesNoServer(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*corev1.Secret)
		asked func(*servers) tokens.Token
		after time.Duration
	}{
		"another end":       {spoil: set("expiration", "2036-01-02T03:04:05Z")},
		"another number":    {spoil: set("setpoint-nodes-max", "16")},
		"another seal":      {spoil: set("setpoint-server-seal", strings.Repeat("0", 64))},
		"no seal":           {spoil: func(s *corev1.Secret) { delete(s.Data, "setpoint-server-seal") }},
		"a seal of nothing": {spoil: func(s *corev1.Secret) { s.Data["setpoint-server-seal"] = nil }},
		"it has ended":      {after: time.Hour},
		"another secret":    {asked: func(s *servers) tokens.Token { return s.with(func(t *tokens.Token) { t.Secret = t.Secret[:21] + "!" }) }},
		"unknown": {asked: func(s *servers) tokens.Token {
			return s.with(func(t *tokens.Token) { t.Secret = "zzzzzz" + t.Secret[6:] })
		}},
		"of an agent": {asked: func(s *servers) tokens.Token { return s.with(func(t *tokens.Token) { t.Role = tokens.RoleNode }) }},
		"of another cluster": {asked: func(s *servers) tokens.Token {
			return s.with(func(t *tokens.Token) { t.Pin = strings.Repeat("0", 64) })
		}},
		"a token of agents, sic": {spoil: asAgents},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServers(t)
			secrets := s.client.CoreV1().Secrets("kube-system")
			secret, err := secrets.Get(t.Context(), "bootstrap-token-"+s.token.ID(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := json.Marshal(secret); err != nil || strings.Contains(string(text), s.token.Key()) {
				t.Errorf("the Secret tells the token: %s (%v)", text, err)
			}
			if c.spoil != nil {
				c.spoil(secret)
				if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			token := s.token
			if c.asked != nil {
				token = c.asked(s)
			}
			if err := AdmitServer(t.Context(), s.client, s.ca, token, s.made.Add(c.after)); !errors.Is(err, join.ErrServerTokenRefused) {
				t.Errorf("%v", err)
			}
		})
	}
}

func set(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

// asAgents makes of the Secret what one of a token for agents is.
func asAgents(s *corev1.Secret) {
	delete(s.Data, "setpoint-server-seal")
	s.Data["token-secret"], s.Data["usage-bootstrap-authentication"] = []byte("0123456789abcdef"), []byte("true")
}

func (s *servers) with(change func(*tokens.Token)) tokens.Token {
	token := s.token
	change(&token)
	return token
}

func TestWhatATokenForServersMayBe(t *testing.T) {
	s := newServers(t)
	for _, c := range []struct {
		wanted Wanted
		want   error
	}{
		{Wanted{TTL: time.Second, Nodes: 1}, ErrLife},
		{Wanted{TTL: 2 * MaxLife, Nodes: 1}, ErrLife},
		{Wanted{TTL: time.Hour}, ErrServers},
		{Wanted{TTL: time.Hour, Nodes: ServersMax + 1}, ErrServers},
	} {
		if _, err := CreateServer(t.Context(), s.client, s.ca, c.wanted, s.made); !errors.Is(err, c.want) || !IsMistake(err) {
			t.Errorf("%+v: %v", c.wanted, err)
		}
	}
}
