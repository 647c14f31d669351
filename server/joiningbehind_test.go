package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestNobodyJoinsAtAServerThatIsBehind: before it follows the newest state it may not know who was shut out.
func TestNobodyJoinsAtAServerThatIsBehind(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	running := startLone(t, t.TempDir(), cluster)
	client := clientOf(t, running)
	answer := func(a *api) (codes []int) {
		for _, service := range []apiserver.Service{a.joinService(client), a.joinServerService(client)} {
			recorder := httptest.NewRecorder()
			service.Handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
			codes = append(codes, recorder.Code)
		}
		return codes
	}
	behind := &api{storage: running.api.storage, config: running.api.config}
	behind.rotations = behind.newRotations(client, nil)
	if codes := answer(behind); codes[0] != http.StatusServiceUnavailable || codes[1] != http.StatusServiceUnavailable {
		t.Errorf("behind it answers %v", codes)
	}
	soon(t, func() string { return unless(running.followsRotations(), "it does not follow") })
	if codes := answer(running.api); codes[0] != http.StatusUnauthorized || codes[1] == http.StatusServiceUnavailable {
		t.Errorf("then it answers %v", codes)
	}
}
