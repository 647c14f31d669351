package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// told is a connection that brings a text, in parts of some bytes.
type told struct {
	net.Conn
	text *strings.Reader
	part int
}

func (c told) Read(p []byte) (int, error) { return c.text.Read(p[:min(len(p), c.part)]) }

// TestAHeaderIsBounded: more than HeaderBytesMax come only after a header has ended, whatever ends its lines and in whichever parts it comes.
func TestAHeaderIsBounded(t *testing.T) {
	large := strings.Repeat("a: b\r\n", 2*HeaderBytesMax/6)
	for name, c := range map[string]struct {
		text  string
		whole bool
	}{
		"lines without end":    {"HTTP/1.1 101 x\r\n" + large, false},
		"one line without end": {strings.ReplaceAll(large, "\r\n", ""), false},
		"no line":              {strings.Repeat("\r", 2*HeaderBytesMax), false},
		"a stream":             {"HTTP/1.1 101 x\r\na: b\r\n\r\n" + large, true},
		"short ends of lines":  {"HTTP/1.1 101 x\na: b\n\n" + large, true},
		"mixed":                {"HTTP/1.1 101 x\na: b\n\r\n" + large, true},
	} {
		for _, part := range []int{1, 7, 4096} {
			got, err := io.ReadAll(&headed{Conn: told{text: strings.NewReader(c.text), part: part}})
			if whole := err == nil && string(got) == c.text; whole != c.whole || !whole && (!errors.Is(err, errHeader) || len(got) > HeaderBytesMax) {
				t.Errorf("%s, by %d bytes: %d of %d bytes, %v", name, part, len(got), len(c.text), err)
			}
		}
	}
}

// TestUpgradesAreDialled as before, with TLS or without.
func TestUpgradesAreDialled(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "here "+r.URL.Path) })
	plain, secured := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secured.Close()
	for _, server := range []*httptest.Server{plain, secured} {
		at, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		to, transport := Upgrade(at, server.Client().Transport)
		to.Path = "/a"
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(ask)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if string(text) != "here /a" || err != nil {
			t.Errorf("%s: %q, %v", server.URL, text, err)
		}
		transport.(*http.Transport).CloseIdleConnections()
	}
}
