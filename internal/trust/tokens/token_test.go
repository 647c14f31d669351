package tokens

import (
	"errors"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	pin := strings.Repeat("0a", 32)
	token, err := New(RoleNode, pin)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(" " + token.Text() + "\n")
	if err != nil || parsed != token || parsed.Pin != pin || token.ID()+token.Key() != token.Secret || len(token.ID()) != 6 || len(token.Key()) != 16 {
		t.Errorf("%+v, %v", parsed, err)
	}
	if strings.Contains(token.String(), token.Secret) {
		t.Error("String shows the secret")
	}
	if !SameSecret([]byte("a"), []byte("a")) || SameSecret([]byte("a"), []byte("b")) || SameSecret(nil, []byte("a")) {
		t.Error("SameSecret is wrong")
	}
	for _, text := range []string{"", "a.b", "server." + pin + ".x", "node.zz.x", "node." + pin + ".", token.Text() + ".x", strings.Repeat("a", 10000)} {
		if _, err := Parse(text); !errors.Is(err, ErrBad) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
