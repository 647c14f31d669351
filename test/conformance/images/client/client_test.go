package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestCurl(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(r.Method + r.Header.Get("X-A")))
	}))
	defer server.Close()
	out := filepath.Join(t.TempDir(), "out")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"get":              {[]string{"-gqs", "--connect-timeout", "1", server.URL}, 0, "GET"},
		"flags behind":     {[]string{"-H", "X-A: b", server.URL, "-X", "PUT"}, 0, "PUTb"},
		"without a scheme": {[]string{"-q", "-s", "--max-time", "5", server.Listener.Addr().String() + "/"}, 0, "GET"},
		"not found":        {[]string{server.URL + "/missing"}, 0, "404 page not found\n"},
		"not found, -f":    {[]string{"-sf", server.URL + "/missing"}, exitHTTP, ""},
		"nobody there":     {[]string{"127.0.0.1:1"}, exitUnconnected, ""},
		"unknown flag":     {[]string{"--unknown", server.URL}, exitUsage, ""},
	} {
		_ = os.Remove(out)
		code, err := curl(append([]string{"-o", out}, c.args...))
		got, _ := os.ReadFile(out)
		if code != c.code || string(got) != c.want || (err == nil) != (code == 0) {
			t.Errorf("%s: %d %q %v", name, code, got, err)
		}
	}
}
