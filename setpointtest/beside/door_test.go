package beside

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCachesAsk: only lists, watches and discovery keep a manager from its controllers.
func TestCachesAsk(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods":                                        true,
		"/api/v1/namespaces":                                  true,
		"/api/v1/namespaces/default/pods":                     true,
		"/apis/example.com/v1/shops":                          true,
		"/apis/example.com/v1/namespaces/a/shops":             true,
		"/apis/example.com/v1":                                true,
		"/api/v1":                                             true,
		"/apis":                                               true,
		"/version":                                            true,
		"/api/v1/namespaces/default":                          false,
		"/api/v1/namespaces/default/status":                   false,
		"/api/v1/namespaces/default/pods/a":                   false,
		"/api/v1/namespaces/default/pods/a/log":               false,
		"/apis/example.com/v1/shops/blue":                     false,
		"/apis/example.com/v1/namespaces/a/shops/blue/status": false,
	} {
		if cachesAsk(path) != want {
			t.Errorf("%s: not %v", path, want)
		}
	}
}

// TestGetIsNoCache: an object that an operator looks for in vain is not what its caches wait for. The group is named without its version.
func TestGetIsNoCache(t *testing.T) {
	c := Start(t, Config{Loops: APIOnly})
	client := &http.Client{Transport: door{c.world, true}}
	for _, path := range []string{"/api/v1/namespaces/default/configmaps/none", "/apis/example.com/v1/namespaces/default/shops"} {
		response, err := client.Get(insideHost + path)
		if err != nil || response.StatusCode != http.StatusNotFound {
			t.Fatalf("%v, %v", response, err)
		}
		response.Body.Close()
	}
	said := c.refused.WaitFor(nil)
	if strings.Contains(said, "configmaps") || !strings.HasSuffix(said, "shops: 404 Not Found: is a CRD of example.com missing in Config.CRDs?") {
		t.Error(said)
	}
}

// closes notes that it was closed.
type closes struct {
	io.Reader
	closed *bool
}

func (c closes) Close() error {
	*c.closed = true
	return nil
}

// TestDoorClosesBodies: also after the end of the test, as a RoundTripper has to.
func TestDoorClosesBodies(t *testing.T) {
	closed := false
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, insideHost+"/api/v1/namespaces", closes{strings.NewReader("{}"), &closed})
	if err != nil {
		t.Fatal(err)
	}
	response, err := door{&world{ended: true}, false}.RoundTrip(request)
	if response != nil {
		response.Body.Close()
	}
	if !errors.Is(err, errEnded) || !closed {
		t.Errorf("%v, closed: %v", err, closed)
	}
}
