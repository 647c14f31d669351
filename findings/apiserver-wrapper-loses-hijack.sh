#!/usr/bin/env bash
# k8s.io/apiserver v0.37.2, pkg/endpoints/responsewriter: a wrapped ResponseWriter can be taken over (http.Hijacker) only if it
# could also tell that its client is gone (http.CloseNotifier, deprecated since Go 1.11) and be flushed.
#
# Guess before: WrapForHTTP1Or2 shows what the inner writer can do: one with Flush and Hijack has Hijack afterwards.
#
# Behaviour: it asks the inner writer for CloseNotifier and Flusher together first, and only one that has both for Hijacker
# (responsewriter/wrapper.go). For any other it returns the decorator alone, which has neither Flush nor Hijack. So a middleware of
# one's own between net/http and upstream's handlers, written today with Flush, Hijack and Unwrap, breaks exec, attach and port-forward,
# unless it has a CloseNotify that nobody calls.
#
# Output seen on 28 November 2026 with go1.26:
#   Flush and Hijack: wrapped has Hijack false, Flush false
#   and CloseNotify:  wrapped has Hijack true, Flush true
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// modern is a writer as one would write it today.
type modern struct{ http.ResponseWriter }

func (modern) Flush()                                        {}
func (modern) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

// old can tell of its client too.
type old struct{ modern }

func (old) CloseNotify() <-chan bool { return nil }

// decorator is one of upstream's, which counts, or the like.
type decorator struct{ http.ResponseWriter }

func (d decorator) Unwrap() http.ResponseWriter { return d.ResponseWriter }

var _ responsewriter.UserProvidedDecorator = decorator{}

func main() {
	inner := modern{httptest.NewRecorder()}
	show("Flush and Hijack:", inner)
	show("and CloseNotify: ", old{inner})
}

func show(name string, w http.ResponseWriter) {
	wrapped := responsewriter.WrapForHTTP1Or2(decorator{w})
	_, hijacks := wrapped.(http.Hijacker)
	_, flushes := wrapped.(http.Flusher)
	fmt.Printf("%s wrapped has Hijack %v, Flush %v\n", name, hijacks, flushes)
}
EOF
go mod init finding >/dev/null 2>&1
go get k8s.io/apiserver@v0.37.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . | tee output
diff output - <<'EOF'
Flush and Hijack: wrapped has Hijack false, Flush false
and CloseNotify:  wrapped has Hijack true, Flush true
EOF
