package pods

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHooksTakeAnyCertificate: containers speak HTTPS with certificates of their own.
func TestHooksTakeAnyCertificate(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer server.Close()
	for _, code = range []int{http.StatusOK, http.StatusInternalServerError} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(req); (err == nil) != (code == http.StatusOK) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
