package admin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
)

// TestWhatIsNotDoneTwice: after a request that was sent and not answered nobody else is asked for it, but for what may be done again.
func TestWhatIsNotDoneTwice(t *testing.T) {
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) }))
	defer refuses.Close()
	absent := httptest.NewServer(http.NotFoundHandler())
	absent.Close()
	for name, c := range map[string]struct {
		call  func(*rest.Config) error
		twice bool // it may be done
	}{
		"a token": {func(c *rest.Config) error {
			_, err := CreateServerToken(t.Context(), c, jointoken.Wanted{TTL: time.Hour, Nodes: 1})
			return err
		}, false},
		"a step": {func(c *rest.Config) error {
			_, err := OrderPace(t.Context(), c, PaceOrder{Order: StepLoop, Loop: "l"})
			return err
		}, false},
		"a pause": {func(c *rest.Config) error {
			_, err := OrderPace(t.Context(), c, PaceOrder{Order: PauseLoop, Loop: "l"})
			return err
		}, true},
		"an advance": {func(c *rest.Config) error {
			return OrderLesson(t.Context(), c, LessonOrder{Order: AdvanceLesson, By: 1})
		}, false},
		"a kill": {func(c *rest.Config) error { return OrderLesson(t.Context(), c, LessonOrder{Order: KillLesson}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.call(&rest.Config{Host: hangsUp.URL}); err == nil || IsFinal(err) == c.twice {
				t.Errorf("no answer: %v", err)
			}
			if err := c.call(&rest.Config{Host: absent.URL}); err == nil || IsFinal(err) {
				t.Errorf("nobody there: %v", err)
			}
			if err := c.call(&rest.Config{Host: refuses.URL}); !errors.As(err, new(*Refusal)) || !IsFinal(err) {
				t.Errorf("refused: %v", err)
			}
		})
	}
}
