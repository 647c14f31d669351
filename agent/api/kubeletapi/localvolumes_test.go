package kubeletapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/agent/volumes/local"
)

func TestLocalVolumesAreMadeAndRemoved(t *testing.T) {
	store, err := local.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	handler := newServer(Config{LocalVolumes: store}).handler()
	for _, c := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"GET", "/localVolumes", "", 200, `{"handles":null}`},
		{"PUT", "/localVolumes/pvc-a", `{"bytes": 1048576}`, 200, `{"bytes":1048576`},
		{"PUT", "/localVolumes/pvc-a", `{"bytes": 1048576, "block": true}`, 400, "the other volumeMode"},
		{"PUT", "/localVolumes/pvc-a", `{"bytes": -1}`, 400, "invalid size"},
		{"PUT", "/localVolumes/pvc-a", `{`, 400, ""},
		{"PUT", "/localVolumes/pvc-a", `{"x": "` + strings.Repeat("x", bodyMax) + `"}`, 400, "too large"},
		{"PUT", "/localVolumes/..%2f..%2fetc", `{"bytes": 1}`, 400, "invalid handle"},
		{"GET", "/localVolumes", "", 200, `{"handles":["pvc-a"]}`},
		{"DELETE", "/localVolumes/pvc-a?onlyEmpty=true", "", 200, "{}"},
		{"DELETE", "/localVolumes/pvc-a", "", 200, "{}"},
		{"DELETE", "/localVolumes/%2e%2e", "", 400, "invalid handle"},
		{"GET", "/localVolumes", "", 200, `{"handles":null}`},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	without := httptest.NewRecorder()
	newServer(Config{}).handler().ServeHTTP(without, httptest.NewRequest("GET", "/localVolumes", nil))
	if without.Code != http.StatusNotFound {
		t.Errorf("a node without them: %d", without.Code)
	}
}
