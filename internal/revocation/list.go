package revocation

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Identity is who shows something at a door. Fields that a door does not know are empty.
type Identity struct {
	// User is the name of the user.
	User string
	// Key is the hash of the key of the certificate that is shown (trust.KeyHash).
	Key string
	// Token is the id of the token that is shown.
	Token string
	// Authority is what the certificate of the authority that has signed the one that is shown calls its key (OfChains).
	Authority string
}

// What tokens say of themselves, as upstream writes it.
const (
	credentialKey = "authentication.kubernetes.io/credential-id"
	tokenPrefix   = "JTI="
	// bootstrapPrefix begins the names of users that tokens to join with have.
	bootstrapPrefix = "system:bootstrap:"
)

// OfUser is by what a user may be revoked: his name, and the id of his token, which is in his name or in what else is told of him.
func OfUser[V ~[]string](name string, extra map[string]V) Identity {
	id := Identity{User: name}
	if token, ok := strings.CutPrefix(name, bootstrapPrefix); ok {
		id.Token = token
	}
	for _, credential := range extra[credentialKey] {
		if token, ok := strings.CutPrefix(credential, tokenPrefix); ok {
			id.Token = token
		}
	}
	return id
}

// List is what is revoked, by what doors see. Nobody changes it.
type List struct{ users, keys, tokens map[string]*known }

// known is an entry, and who was told of it.
type known struct {
	Entry
	told    atomic.Int64 // seconds since 1970
	skipped atomic.Int64 // since then
}

// NewList is the list of entries.
func NewList(entries []Entry) *List {
	l := &List{users: map[string]*known{}, keys: map[string]*known{}, tokens: map[string]*known{}}
	for _, e := range entries {
		k := &known{Entry: e}
		switch {
		case e.Kind == Token:
			l.tokens[e.Name] = k
		case e.Key != "":
			l.keys[e.Key] = k
		default:
			l.users[e.user()] = k
		}
	}
	return l
}

func (l *List) find(who Identity) *known {
	for _, found := range []*known{l.users[who.User], l.keys[who.Key], l.tokens[who.Token]} {
		if found != nil {
			return found
		}
	}
	return nil
}

// Error says that somebody is revoked, since when, and what to do.
type Error struct{ entry *known }

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s was revoked on %s: %s", e.entry.Target, e.entry.At.UTC().Format(time.RFC3339), e.entry.advice())
}

// Target is what was revoked.
func (e *Error) Target() Target { return e.entry.Target }

// tellAgainAfter is how long one entry is not told of again.
const tellAgainAfter = time.Hour

// Tell says whether to log that somebody was shut out: whoever is tries again for ever. skipped is how often he did since it was told last.
func (e *Error) Tell(now time.Time) (skipped int64, tell bool) {
	last := e.entry.told.Load()
	if last != 0 && now.Sub(time.Unix(last, 0)) < tellAgainAfter || !e.entry.told.CompareAndSwap(last, now.Unix()) {
		e.entry.skipped.Add(1)
		return 0, false
	}
	return e.entry.skipped.Swap(0), true
}

func (t Target) advice() string {
	switch t.Kind {
	case Node:
		return "ask an administrator for a new token, and reset the machine"
	case Server:
		return "ask an administrator, and reset the machine"
	case Token:
		return "ask an administrator for another"
	}
	return "ask an administrator"
}
