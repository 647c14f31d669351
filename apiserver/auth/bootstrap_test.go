package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

func TestBootstrapTokens(t *testing.T) {
	good := func() map[string]string {
		return map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
	}
	with := func(key, value string) map[string]string {
		data := good()
		data[key] = value
		return data
	}
	for name, c := range map[string]struct {
		data    map[string]string
		kind    corev1.SecretType
		token   string
		groups  []string
		refused bool // else, without groups, it is left to others
	}{
		"good":           {good(), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", []string{"system:bootstrappers"}, false},
		"with a group":   {with("auth-extra-groups", "system:bootstrappers:x,system:masters"), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", []string{"system:bootstrappers", "system:bootstrappers:x"}, false},
		"not yet over":   {with("expiration", time.Now().Add(time.Hour).Format(time.RFC3339)), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", []string{"system:bootstrappers"}, false},
		"over":           {with("expiration", time.Now().Add(-time.Hour).Format(time.RFC3339)), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", nil, true},
		"unclear end":    {with("expiration", "tomorrow"), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", nil, true},
		"another's key":  {good(), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdee", nil, true},
		"another id":     {good(), "bootstrap.kubernetes.io/token", "abcdeg.0123456789abcdef", nil, true},
		"for other uses": {with("usage-bootstrap-authentication", "false"), "bootstrap.kubernetes.io/token", "abcdef.0123456789abcdef", nil, true},
		"another secret": {good(), "Opaque", "abcdef.0123456789abcdef", nil, true},
		"another form":   {good(), "bootstrap.kubernetes.io/token", "abcdef.0123", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, store := running(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: c.kind, Data: map[string][]byte{}}
			for key, value := range c.data {
				secret.Data[key] = []byte(value)
			}
			_, err := store.Table(corev1.SchemeGroupVersion.WithResource("secrets")).Write(t.Context(), "kube-system", secret.Name,
				func(*storage.View) (*storage.Change, error) { return &storage.Change{Object: secret}, nil })
			if err != nil {
				t.Fatal(err)
			}
			response, ok, err := auth.NewBootstrapTokens(store).AuthenticateToken(t.Context(), c.token)
			if ok != (c.groups != nil) || (err != nil) != c.refused {
				t.Fatalf("%v, %v", ok, err)
			}
			id, key, _ := strings.Cut(c.token, ".")
			if admitted, err := auth.NewBootstrapTokens(store).Admits(t.Context(), tokens.Token{Secret: id + key}); admitted != ok || err != nil {
				t.Errorf("as a join token: %v, %v", admitted, err)
			}
			if ok && (response.User.GetName() != "system:bootstrap:abcdef" || cmp.Diff(c.groups, response.User.GetGroups()) != "") {
				t.Errorf("%+v", response.User)
			}
		})
	}
}
