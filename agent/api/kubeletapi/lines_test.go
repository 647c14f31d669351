package kubeletapi

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// parted is an answer that counts its parts.
type parted struct {
	*httptest.ResponseRecorder
	parts int
}

func (c *parted) Write(p []byte) (int, error) { c.parts++; return c.ResponseRecorder.Write(p) }

// TestLinesGoTogether: lines that follow each other at once are sent in few parts, and a line after a pause is sent at once.
func TestLinesGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &parted{ResponseRecorder: httptest.NewRecorder()}
		out := &gathered{w: w, outside: func(wait func()) { wait() }}
		line := func() {
			if _, err := out.Write([]byte("a\n")); err != nil {
				t.Error(err)
			}
		}
		line()
		if w.parts != 1 || !w.Flushed {
			t.Errorf("the first line is in %d parts", w.parts)
		}
		for range gatherBytesMax {
			line()
		}
		if w.parts != 3 {
			t.Errorf("%d parts of what fills two", w.parts)
		}
		line()
		time.Sleep(gatherTime)
		synctest.Wait()
		if w.parts != 4 {
			t.Errorf("%d parts, with the line that nothing followed", w.parts)
		}
		line()
		out.Close()
		time.Sleep(time.Second)
		if want := strings.Repeat("a\n", gatherBytesMax+3); w.Body.String() != want || w.parts != 5 {
			t.Errorf("%d bytes in %d parts, want %d", w.Body.Len(), w.parts, len(want))
		}
	})
}

// TestLooksTakeTurns: requests of one namespace for logs look one after the other, where it has one turn; another namespace's does not
// wait, a client who does not read keeps nobody waiting, and a follower gives its turn back.
func TestLooksTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := shares.NewTurns(shares.Limits{All: 100, Each: 1})
		begin := func(namespace string, follows bool) (l *look, begun *bool) {
			l, begun = &look{ctx: t.Context(), turns: turns, holder: shares.Namespace(namespace)}, new(bool)
			go func() {
				l.begin(follows, filepath.Join(t.TempDir(), "none"))
				*begun = true
			}()
			synctest.Wait()
			return l, begun
		}
		first, _ := begin("ten", false)
		second, secondBegun := begin("ten", true)
		if _, otherBegun := begin("eleven", false); *secondBegun || !*otherBegun {
			t.Errorf("begun: the second %v, another namespace's %v", *secondBegun, *otherBegun)
		}
		read := make(chan struct{})
		go first.outside(func() { <-read })
		synctest.Wait()
		if !*secondBegun {
			t.Error("it waits for a client that does not read")
		}
		third, thirdBegun := begin("ten", false)
		time.Sleep(lookLeast)
		synctest.Wait()
		if !*thirdBegun {
			t.Error("it waits for a follower that has read all")
		}
		close(read)
		third.end()
		second.end()
		synctest.Wait()
		first.end()
		if _, begun := begin("ten", false); !*begun {
			t.Error("a turn was not given back")
		}
	})
}

// TestAFollowerHasTimeToRead what there was.
func TestAFollowerHasTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, make([]byte, lookBytesEach/50), 0o600); err != nil {
			t.Fatal(err)
		}
		turns := shares.NewTurns(shares.Limits{All: 100, Each: 1})
		follower := &look{ctx: t.Context(), turns: turns, holder: shares.Namespace("ten")}
		follower.begin(true, path)
		defer follower.end()
		begun := time.Now()
		next := &look{ctx: t.Context(), turns: turns, holder: shares.Namespace("ten")}
		next.begin(false, path)
		defer next.end()
		if took := time.Since(begun); took != 20*time.Millisecond+lookLeast {
			t.Errorf("the next one waited %v", took)
		}
	})
}
