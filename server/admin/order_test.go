package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOrdersAreRead as one value and to their end, by each handler that takes one.
func TestOrdersAreRead(t *testing.T) {
	for body, good := range map[string]bool{
		`{"order":"a"}`: true, " {\"order\":\"a\"}\n ": true, `{}`: true,
		``: false, `order`: false, `{"order":1}`: false, `{"order":"a","all":true}`: false, `{"order":"a"`: false,
		`{"order":"a"}{"order":"b"}`: false, `{"order":"a"} and more`: false, `{"order":"a"}]`: false,
	} {
		var order struct {
			Order string `json:"order"`
		}
		if err := ReadOrder(strings.NewReader(body), &order); (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
	}
	a := &Admin{}
	for name, serve := range map[string]http.HandlerFunc{"lesson": a.serveLesson, "loop": a.servePace, "rotate": a.serveRotate} {
		w := httptest.NewRecorder()
		serve(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"order":"a"}{"order":"b"}`)))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), errMore.Error()) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
