#!/usr/bin/env bash
# github.com/hashicorp/memberlist v0.6.0: removing a key from a Keyring changes the list of keys that GetKeys has given to others before.
#
# Guess before: Keyring has a lock, and GetKeys takes it, so what it returns is a list of its own, or one that nobody changes any more:
# AddKey and UseKey do make a new one.
#
# Behaviour: RemoveKey (keyring.go) shortens the list in place with append before it makes the new one, so the keys behind the removed
# one move up in the array that earlier callers still read, without the lock. Every packet is decrypted with such a list: decryptPayload
# goes through the keys of GetKeys (security.go, net.go), so the one behind the removed key is not where it was while it looks, and the
# last one is there twice. Only the removal of the last key of the list moves nothing.
#
# So who replaces keys while messages arrive puts the wanted ones before the others, by UseKey, and removes from the end.
#
# Output seen on 29 November 2026 with go1.26:
#   after AddKey and UseKey the list from before is the same: true
#   after the last key was removed the list from before is the same: true
#   after one in the middle was removed the list from before is the same: false
#   the list from before: primary third third, and now: primary third
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/memberlist"
)

var names = map[byte]string{1: "primary", 2: "second", 3: "third", 4: "fourth"}

func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func list(keys [][]byte) string {
	var all []string
	for _, k := range keys {
		all = append(all, names[k[0]])
	}
	return strings.Join(all, " ")
}

// same tells whether a list that was read before a change is what it was after it.
func same(ring *memberlist.Keyring, change func()) bool {
	read := ring.GetKeys()
	was := slices.Clone(read)
	change()
	return list(read) == list(was)
}

func main() {
	ring, err := memberlist.NewKeyring([][]byte{key(1), key(2), key(3)}, key(1))
	must(err)
	fmt.Println("after AddKey and UseKey the list from before is the same:", same(ring, func() {
		must(ring.AddKey(key(4)))
		must(ring.UseKey(key(2)))
		must(ring.UseKey(key(1)))
	}))
	fmt.Println("after the last key was removed the list from before is the same:", same(ring, func() { must(ring.RemoveKey(key(4))) }))
	read := ring.GetKeys()
	fmt.Println("after one in the middle was removed the list from before is the same:", same(ring, func() { must(ring.RemoveKey(key(2))) }))
	fmt.Printf("the list from before: %s, and now: %s\n", list(read), list(ring.GetKeys()))
}
EOF
go mod init finding >/dev/null 2>&1
go get github.com/hashicorp/memberlist@v0.6.0 >/dev/null 2>&1
go run . > seen

diff seen - <<'EOF'
after AddKey and UseKey the list from before is the same: true
after the last key was removed the list from before is the same: true
after one in the middle was removed the list from before is the same: false
the list from before: primary third third, and now: primary third
EOF
