package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/third_party/forked/golang/netutil"
)

// HeaderBytesMax is how large the header of an answer may be that comes from a pod or an agent: a server keeps it in memory.
const HeaderBytesMax = 64 << 10

// errHeader is why a stream does not begin.
var errHeader = errors.New("the header of the answer is larger than 64 KiB")

// Upgrade is what upstream's handlers of streams may connect by: they read the header of the answer whole, however large it is. The answer
// to a stream that is asked for by what is returned has a header of HeaderBytesMax, or the stream does not begin. TLS, if the
// location asks for it, is below, so that the location that is returned does not.
func Upgrade(location *url.URL, transport http.RoundTripper) (*url.URL, http.RoundTripper) {
	to := *location
	to.Scheme, to.Host = "http", netutil.CanonicalAddr(location)
	return &to, &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := apiproxy.DialURL(ctx, location, transport)
		if err != nil {
			return nil, err
		}
		return &headed{Conn: conn}, nil
	}}
}

// headed is a connection that brings one header, and then anything.
type headed struct {
	net.Conn
	read int // of the header
	// line is whether nothing has come of the present line; end that the header has ended.
	line, end bool
}

// Read implements net.Conn.
func (h *headed) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if h.end {
		return n, err
	}
	h.look(p[:n])
	if h.read += n; !h.end && h.read > HeaderBytesMax {
		return 0, errHeader
	}
	return n, err
}

// look finds the empty line after which the header ends.
func (h *headed) look(p []byte) {
	for len(p) > 0 && !h.end {
		at := bytes.IndexByte(p, '\n')
		switch rest := bytes.TrimSuffix(p[:max(at, 0)], []byte("\r")); {
		case at < 0:
			h.line = h.line && len(bytes.Trim(p, "\r")) == 0
			return
		case h.line && len(rest) == 0:
			h.end = true
		}
		h.line, p = true, p[at+1:]
	}
}
