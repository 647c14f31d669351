package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Roles of tokens: the holder of one may join as a node under a name that is free, or as a server, which gets the cluster's keys. What
// a token says of itself proves nothing: the cluster knows its role.
const (
	RoleNode   = "node"
	RoleServer = "server"
)

// Life is how long a join token is good if nothing else is asked for.
const Life = 24 * time.Hour

// ServerLife is Life of a token for servers. It is as good as the key of the authority, and typed where others may read it later:
// in a shell's history, in the log of sudo.
const ServerLife = time.Hour

const (
	// tokenIDLength letters name a token, tokenKeyLength more are its secret: the two
	// parts of a bootstrap token.
	tokenIDLength  = 6
	tokenKeyLength = 16
	tokenLetters   = "abcdefghijklmnopqrstuvwxyz0123456789"
	// tokenMaxBytes bounds what is parsed of a token.
	tokenMaxBytes = 512
)

// tokenSecret may have more letters than New makes: earlier versions made 64.
var tokenSecret = regexp.MustCompile(`^[a-z0-9]{22,64}$`)

// ErrBad says that a text is not a join token, or not one of this cluster.
var ErrBad = errors.New("bad join token")

// Token lets a machine join: <role>.<pin of the CA>.<secret>. The pin tells the machine
// whom to trust, the secret tells the cluster that the machine may join. The secret is
// that of a bootstrap token: its id, followed by its key.
type Token struct {
	Role, Pin, Secret string
}

// New makes a token with a fresh secret; pin is the authority's (CA.Pin).
func New(role, pin string) (Token, error) {
	letters := make([]byte, 0, tokenIDLength+tokenKeyLength)
	random := make([]byte, 1)
	for len(letters) < cap(letters) {
		if _, err := rand.Read(random); err != nil {
			return Token{}, fmt.Errorf("token: %w", err)
		}
		if n := int(random[0]); n < 256/len(tokenLetters)*len(tokenLetters) { // or some letters would be likelier
			letters = append(letters, tokenLetters[n%len(tokenLetters)])
		}
	}
	return Token{Role: role, Pin: pin, Secret: string(letters)}, nil
}

// Parse reads a token's text; space around it is ignored.
func Parse(text string) (Token, error) {
	text = strings.TrimSpace(text)
	parts := strings.Split(text, ".")
	if len(text) > tokenMaxBytes || len(parts) != 3 {
		return Token{}, fmt.Errorf("%w: want <role>.<sha256 of the CA>.<secret>", ErrBad)
	}
	token := Token{Role: parts[0], Pin: parts[1], Secret: parts[2]}
	if token.Role != RoleNode && token.Role != RoleServer {
		return Token{}, fmt.Errorf("%w: unknown role, want %q or %q", ErrBad, RoleNode, RoleServer)
	}
	if pin, err := hex.DecodeString(token.Pin); err != nil || len(pin) != sha256.Size {
		return Token{}, fmt.Errorf("%w: its second part is not a SHA-256 in hexadecimal", ErrBad)
	}
	if !tokenSecret.MatchString(token.Secret) {
		return Token{}, fmt.Errorf("%w: its third part is not a secret of 22 to 64 small letters and digits", ErrBad)
	}
	return token, nil
}

// Text is the token as it is written to files: a secret.
func (t Token) Text() string { return t.Role + "." + t.Pin + "." + t.Secret }

// ID names the token; it is no secret.
func (t Token) ID() string { return t.Secret[:min(len(t.Secret), tokenIDLength)] }

// Key is what only the holder of the token knows.
func (t Token) Key() string { return t.Secret[min(len(t.Secret), tokenIDLength):] }

// String hides the secret, so that a token can stand in a log line.
func (t Token) String() string { return t.Role + "." + t.Pin + ".(secret)" }

// SameSecret compares the hashes of two secrets in constant time.
func SameSecret(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
