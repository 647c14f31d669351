package jointoken

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// TestTheFirstTokenIsAwaited: agents that start with the servers are not refused because they were faster.
func TestTheFirstTokenIsAwaited(t *testing.T) {
	first, other := newToken(t), newToken(t)
	kubeSystem := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, Annotations: annotations}}
	}
	for name, c := range map[string]struct {
		asked    tokens.Token
		system   *corev1.Namespace
		admitted bool
		want     bool
		err      error
	}{
		"good":                        {first, kubeSystem(nil), true, true, nil},
		"not stored yet":              {first, kubeSystem(nil), false, false, ErrNotYet},
		"before there are namespaces": {first, nil, false, false, ErrNotYet},
		"ended":                       {first, kubeSystem(map[string]string{joinTokenAnnotation: first.ID()}), false, false, nil},
		"another":                     {other, kubeSystem(nil), false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.system != nil {
				client = fake.NewClientset(c.system)
			}
			got, err := Judge(t.Context(), client, first, c.asked, func(context.Context, tokens.Token) (bool, error) { return c.admitted, nil })
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}

func newToken(t *testing.T) tokens.Token {
	t.Helper()
	token, err := tokens.New(tokens.RoleNode, strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	return token
}
