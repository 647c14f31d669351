package replica

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"
)

const (
	// idSeparator stands between a server's name and what tells its lives apart.
	// No DNS name has it.
	idSeparator = "+"
	// idSuffixBytes is the length of the random part of a member id, before hex.
	idSuffixBytes = 4
	// nonceBytes is the length of a founding nonce, before hex.
	nonceBytes = 16
)

// MemberName returns the server's name in a member id. A founder's id is its name; a server that joins later,
// or comes back without its data, is name+xxxxxxxx: a server that has lost its votes must not vote under the
// same id again.
func MemberName(id string) string {
	name, _, _ := strings.Cut(id, idSeparator)
	return name
}

func newMemberID(name string) string { return name + idSeparator + randomHex(idSuffixBytes) }

// raftAddress is an address as the configuration stores it. Raft wants each only
// once, but a server that comes back under a new id is where the old one was, and
// two servers may have changed places.
func raftAddress(s Server) raft.ServerAddress {
	return raft.ServerAddress(s.Address + idSeparator + s.ID)
}

// plainAddress is the host:port of a stored address.
func plainAddress(stored raft.ServerAddress) string {
	address, _, _ := strings.Cut(string(stored), idSeparator)
	return address
}

func randomHex(n int) string {
	bytes := make([]byte, n)
	if _, err := rand.Read(bytes); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // documented never to happen
	}
	return hex.EncodeToString(bytes)
}
