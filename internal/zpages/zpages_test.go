package zpages

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func ask(t *testing.T, mux http.Handler, path, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestPages(t *testing.T) {
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	flags.String("name", "node-1", "")
	flags.String("password", "hunter2", "")
	if err := flags.SetAnnotation("password", Classified, []string{"true"}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	Of("kubelet", flags)(mux, []string{"/metrics/cadvisor", "/metrics"})
	text := ask(t, mux, "/flagz", "")
	if !strings.Contains(text, "kubelet flagz") || !strings.Contains(text, "node-1") || strings.Contains(text, "hunter2") {
		t.Error(text)
	}
	var flagz struct {
		Kind  string
		Flags map[string]string
	}
	const v1beta1 = "application/json;v=v1beta1;g=config.k8s.io;as="
	if err := json.Unmarshal([]byte(ask(t, mux, "/flagz", v1beta1+"Flagz")), &flagz); err != nil || flagz.Kind != "Flagz" ||
		flagz.Flags["name"] != "node-1" || flagz.Flags["password"] != "CLASSIFIED" {
		t.Errorf("%+v, %v", flagz, err)
	}
	var statusz struct {
		Kind, BinaryVersion string
		Paths               []string
	}
	if err := json.Unmarshal([]byte(ask(t, mux, "/statusz", v1beta1+"Statusz")), &statusz); err != nil || statusz.Kind != "Statusz" ||
		!strings.HasPrefix(statusz.BinaryVersion, "1.") || strings.Join(statusz.Paths, " ") != "/flagz /metrics /statusz" {
		t.Errorf("%+v, %v", statusz, err)
	}
}

// TestWithoutFlags: what was not started with flags has no page of them, and no other form of a page than those of upstream.
func TestWithoutFlags(t *testing.T) {
	pages := Handlers{}
	Of("apiserver", nil)(pages, []string{"/livez"})
	if pages["/flagz"] != nil || pages["/statusz"] == nil {
		t.Fatalf("pages: %v", pages)
	}
	if text := ask(t, pages["/statusz"], "/statusz", ""); !strings.Contains(text, "/livez /statusz\n") {
		t.Error(text)
	}
	for _, accept := range []string{"image/png", "application/json", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"} {
		r, w := httptest.NewRequest(http.MethodGet, "/statusz", nil), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		if pages["/statusz"].ServeHTTP(w, r); w.Code != http.StatusNotAcceptable {
			t.Errorf("%s: %d", accept, w.Code)
		}
	}
}
