package tokens

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keep fills the world's Secret with a token and returns it.
func (w *world) keep() string {
	w.t.Helper()
	token, err := w.issuer.IssueLegacy(w.account, w.secret)
	if err != nil {
		w.t.Fatal(err)
	}
	w.secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
	w.put(secretsResource, w.secret)
	return token
}

func (w *world) kept() *corev1.Secret {
	w.t.Helper()
	found, err := w.store.Table(secretsResource).Get(w.t.Context(), w.secret.Namespace, w.secret.Name, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return found.Object().(*corev1.Secret)
}

// TestUseIsWrittenDownOnceADay, also of a token that is refused; other labels stay.
func TestUseIsWrittenDownOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.secret.Labels = map[string]string{"theirs": "kept"}
		token := w.keep()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.tokens.Run(ctx) }()
		version := ""
		for _, c := range []struct {
			pause   time.Duration
			day     string
			written bool
		}{
			{0, "2000-01-01", true}, {time.Hour, "2000-01-01", false}, {22*time.Hour + 59*time.Minute, "2000-01-01", false},
			{time.Minute, "2000-01-02", true}, {240 * time.Hour, "2000-01-12", true},
		} {
			time.Sleep(c.pause)
			for range 3 {
				if _, ok, err := w.tokens.AuthenticateToken(t.Context(), token); !ok {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			got := w.kept()
			if got.Labels[lastUsedLabel] != c.day || got.Labels["theirs"] != "kept" || (got.ResourceVersion != version) != c.written {
				t.Errorf("%v: %v, version %s after %s", time.Now(), got.Labels, got.ResourceVersion, version)
			}
			version = got.ResourceVersion
		}
		w.secret.Labels = map[string]string{invalidSinceLabel: "1999-01-01"}
		w.put(secretsResource, w.secret)
		if _, ok, _ := w.tokens.AuthenticateToken(t.Context(), token); ok {
			t.Error("it is good, although it was invalidated")
		}
		synctest.Wait()
		if got := w.kept(); got.Labels[lastUsedLabel] != "2000-01-12" {
			t.Errorf("the use of an invalidated token: %v", got.Labels)
		}
		stop()
		<-done
	})
}

// TestUseOfWhatIsMadeAnewIsNotNoted, nor does a clock that is behind put a date back.
func TestUseOfWhatIsMadeAnewIsNotNoted(t *testing.T) {
	w, at := newWorld(t), time.Date(2030, 1, 2, 23, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ has, uid, want string }{
		"made anew":         {"", "other", ""},
		"the next day":      {"2030-01-01", "uid-of-kept", "2030-01-02"},
		"a clock is behind": {"2030-01-03", "uid-of-kept", "2030-01-03"},
		"no date":           {"?", "uid-of-kept", "2030-01-02"},
		"a date far ahead":  {"2031-01-01", "uid-of-kept", "2030-01-02"},
	} {
		w.secret.Labels = map[string]string{lastUsedLabel: c.has}
		w.put(secretsResource, w.secret)
		w.tokens.write(t.Context(), use{"x", "kept", types.UID(c.uid), at})
		if got := w.kept().Labels[lastUsedLabel]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	w.tokens.write(t.Context(), use{"x", "gone", "u", at})
}

// TestUsesDoNotPileUp while nobody writes them.
func TestUsesDoNotPileUp(t *testing.T) {
	w := newWorld(t)
	for range 2 * waitingUses {
		w.tokens.note(w.secret, time.Now())
	}
	if n := len(w.tokens.used); n != waitingUses {
		t.Errorf("%d wait", n)
	}
	for label, want := range map[string]bool{"2030-01-02": true, "2030-01-03": true, "2030-01-01": false, "": false, "2030-01-04": false} {
		w.secret.Labels = map[string]string{lastUsedLabel: label}
		if got := isNoted(w.secret, time.Date(2030, 1, 2, 23, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%s: %v", label, got)
		}
	}
}
