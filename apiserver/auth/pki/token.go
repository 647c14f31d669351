package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// RoleNode is the role of a token whose holder may join as a node, under any name that is not a server's.
const RoleNode = "node"

const (
	secretBytes = 32
	// tokenMaxBytes bounds what is parsed of a token.
	tokenMaxBytes = 512
)

// Token lets a machine join: <role>.<pin of the CA>.<secret>. The pin tells the machine
// whom to trust, the secret tells the cluster that the machine may join.
type Token struct {
	Role, Pin, Secret string
}

// NewToken makes a token with a fresh secret of 256 bits.
func NewToken(role string, ca *CA) (Token, error) {
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	return Token{Role: role, Pin: ca.Pin(), Secret: hex.EncodeToString(secret)}, nil
}

// ParseToken reads a token's text; space around it is ignored.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	parts := strings.Split(text, ".")
	if len(text) > tokenMaxBytes || len(parts) != 3 {
		return Token{}, fmt.Errorf("%w: want <role>.<sha256 of the CA>.<secret>", ErrBadToken)
	}
	token := Token{Role: parts[0], Pin: parts[1], Secret: parts[2]}
	if token.Role != RoleNode {
		return Token{}, fmt.Errorf("%w: unknown role, want %q", ErrBadToken, RoleNode)
	}
	if pin, err := hex.DecodeString(token.Pin); err != nil || len(pin) != sha256.Size {
		return Token{}, fmt.Errorf("%w: its second part is not a SHA-256 in hexadecimal", ErrBadToken)
	}
	if token.Secret == "" {
		return Token{}, fmt.Errorf("%w: the secret is missing", ErrBadToken)
	}
	return token, nil
}

// Text is the token as it is written to files: a secret.
func (t Token) Text() string { return t.Role + "." + t.Pin + "." + t.Secret }

// String hides the secret, so that a token can stand in a log line.
func (t Token) String() string { return t.Role + "." + t.Pin + ".(secret)" }

// Equal compares all parts in constant time.
func (t Token) Equal(other Token) bool {
	a, b := sha256.Sum256([]byte(t.Text())), sha256.Sum256([]byte(other.Text()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
