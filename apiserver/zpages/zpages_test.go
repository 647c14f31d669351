package zpages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPages: both are served as text and as JSON, and there is no page of flags where there are none.
func TestPages(t *testing.T) {
	pages, err := Handlers("v1.37.2", map[string]string{"data-dir": "/var/lib/x"}, []string{"/livez", "/livez/ping", "/apis/apps"})
	if err != nil {
		t.Fatal(err)
	}
	const structured = "application/json;v=v1beta1;g=config.k8s.io;as="
	for name, tc := range map[string]struct {
		path, accept string
		code         int
		has          string
	}{
		"status":         {"/statusz", "", 200, "/flagz /livez /statusz\n"},
		"version":        {"/statusz", "text/plain", 200, "Emulation version"},
		"status, JSON":   {"/statusz", structured + "Statusz", 200, `"kind":"Statusz"`},
		"flags":          {"/flagz", "", 200, "/var/lib/x"},
		"flags, JSON":    {"/flagz", structured + "Flagz", 200, `"data-dir":"/var/lib/x"`},
		"other":          {"/flagz", "image/png", 406, ""},
		"JSON, no kind":  {"/flagz", "application/json", 406, ""},
		"another's kind": {"/flagz", structured + "Statusz", 406, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil)
			if tc.accept != "" {
				request.Header.Set("Accept", tc.accept)
			}
			answer := httptest.NewRecorder()
			pages[tc.path].ServeHTTP(answer, request)
			if answer.Code != tc.code || !strings.Contains(answer.Body.String(), tc.has) {
				t.Errorf("%d: %s", answer.Code, answer.Body)
			}
		})
	}
	if pages, err = Handlers("v1.37.2", nil, nil); err != nil || pages["/flagz"] != nil || pages["/statusz"] == nil {
		t.Errorf("without flags: %v, %v", pages, err)
	}
	if _, err = Handlers("one", nil, nil); err == nil {
		t.Error("a version that is none was taken")
	}
}
