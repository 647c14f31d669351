package revocation

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// Kinds of what can be revoked.
const (
	// Node is a machine, by its name: whatever certificate has that name, and joining under it.
	Node = "node"
	// Server is a server of the control plane, by its name.
	Server = "server"
	// User is who is called so: by a certificate, by a token of an issuer, or as a service account (system:serviceaccount:…).
	User = "user"
	// Token is a token to join with, by its id, or a token of a service account or an issuer, by its id (jti).
	Token = "token"
)

// anonymous is the user of who shows nothing, as upstream calls him.
const anonymous = "system:anonymous"

// nameBytesMax is how long the name of a target may be.
const nameBytesMax = 253

var (
	tokenID = regexp.MustCompile(`^[A-Za-z0-9_-]{6,64}$`)
	keyHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ErrTarget says that a text names nothing that can be revoked.
var ErrTarget = errors.New("want node/NAME, server/NAME, user/NAME or token/ID")

// Target is what is revoked.
type Target struct {
	Kind, Name string
	// Key narrows a User to the certificates of one key (trust.KeyHash): others of that name stay. "": whoever has the name.
	Key string
}

// ParseTarget reads kind/name.
func ParseTarget(text string) (Target, error) {
	kind, name, _ := strings.Cut(text, "/")
	t := Target{Kind: kind, Name: name}
	return t, t.Validate()
}

// Validate fails with ErrTarget if this is nothing that can be revoked.
func (t Target) Validate() error {
	switch problem := t.problem(); {
	case problem != "":
		return fmt.Errorf("%w: %q: %s", ErrTarget, t.Kind+"/"+t.Name, problem)
	case t.Key != "" && (t.Kind != User || !keyHash.MatchString(t.Key)):
		return fmt.Errorf("%w: only users are revoked by a key, which is a SHA-256 in hexadecimal", ErrTarget)
	}
	return nil
}

func (t Target) problem() string {
	switch {
	case t.Name == "":
		return "a name is missing"
	case len(t.Name) > nameBytesMax:
		return fmt.Sprintf("the name has more than %d bytes", nameBytesMax)
	}
	switch t.Kind {
	case Node, Server:
		return strings.Join(validation.IsDNS1123Subdomain(t.Name), "; ")
	case User:
		return userProblem(t.Name)
	case Token:
		if !tokenID.MatchString(t.Name) {
			return "the id of a token has 6 to 64 letters, digits and dashes"
		}
		return ""
	}
	return "unknown kind"
}

func userProblem(name string) string {
	if node, ok := trust.NodeOfUser(name); ok {
		return "that is node/" + node
	}
	if server, ok := trust.ServerOfUser(name); ok {
		return "that is server/" + server
	}
	if name == anonymous {
		return "whoever shows nothing has no name to revoke: anonymous requests are configured with --authentication-config"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "the name has control characters"
	}
	return ""
}

// String is what is written: kind/name, and the key if there is one.
func (t Target) String() string {
	if t.Key == "" {
		return t.Kind + "/" + t.Name
	}
	return t.Kind + "/" + t.Name + " with the key " + t.Key
}

// user is the name that the target stands for among users; "": it is none.
func (t Target) user() string {
	switch t.Kind {
	case Node:
		return trust.NodeUser(t.Name)
	case Server:
		return trust.ServerUser(t.Name)
	case User:
		return t.Name
	}
	return ""
}
