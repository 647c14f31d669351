package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// TestRefusalsOfServicesTellWhoMay: somebody who may not is told whom to ask.
func TestRefusalsOfServicesTellWhoMay(t *testing.T) {
	named := func(u user.Info) bool { return u.GetName() != user.Anonymous }
	for want, allow := range map[string]func(user.Info) bool{
		"for users who prove who they are only":     named,
		"for administrators only":                   auth.IsServer,
		"for other parts of the control plane only": auth.IsNode,
	} {
		s := &Server{config: Config{Services: []Service{{Prefix: "/s/", Allow: allow}}}}
		r := httptest.NewRequest(http.MethodPost, "/s/", nil)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: user.Anonymous}))
		w := httptest.NewRecorder()
		s.withServices(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %q, want that it is %s", w.Code, w.Body, want)
		}
	}
}
