package testserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint"
)

// startAPI starts what serves the API and nothing else.
func startAPI(ctx context.Context) (*setpoint.Cluster, error) {
	return setpoint.Start(ctx, setpoint.Config{InMemory: true, APIOnly: true})
}

// TestNothingBeginsInWhatHasEnded: a request that found a cluster before it was deleted starts nothing that nobody would stop.
func TestNothingBeginsInWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		started, err := startAPI(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(ctx, started, "", 1)
		if err := errors.Join(started.Ready(ctx), c.mark(ctx, "mark-1"), c.stop()); err != nil {
			t.Fatal(err)
		}
		never := func(context.Context, *setpoint.Image) (*setpoint.Cluster, error) {
			t.Error("it starts another one")
			return nil, errGone
		}
		_, imageErr := c.image(ctx)
		_, openErr := c.open(ctx)
		for what, err := range map[string]error{
			"image": imageErr, "open": openErr, "reset": c.reset(ctx, "mark-1", never), "mark": c.mark(ctx, "mark-2"),
			"advance": c.advance(ctx, time.Second), "switch": c.switchNode(ctx, "sim-1", false),
		} {
			if !errors.Is(err, errGone) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestTheEndCancelsWhatIsDone: who deletes a cluster does not wait for the week that it advances.
func TestTheEndCancelsWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Context(), nil, "", 0)
		done := make(chan error, 1)
		go func() {
			done <- c.do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		c.end()
		if err := <-done; !errors.Is(err, errGone) {
			t.Error(err)
		}
	})
}

// TestWhoAsksGivesUp: a cluster that nobody waits for any more is not kept.
func TestWhoAsksGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Config{})
		asks, giveUp := context.WithCancel(t.Context())
		_, err := s.hold(asks, "", 0, func(ctx context.Context) (*setpoint.Cluster, error) {
			giveUp()
			return startAPI(ctx)
		})
		if !errors.Is(err, context.Canceled) || len(s.clusters) != 0 || s.places != 0 {
			t.Errorf("%v; %d clusters, %d places taken", err, len(s.clusters), s.places)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPlaces: clusters that start count as those that are held, few start at once, and one that fails leaves its place.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Config{})
		fails, starting := make(chan struct{}), make(chan struct{}, clustersMax)
		errFails := errors.New("it fails")
		ended := make(chan error, clustersMax)
		for range clustersMax {
			go func() {
				_, err := s.hold(t.Context(), "", 0, func(context.Context) (*setpoint.Cluster, error) {
					starting <- struct{}{}
					<-fails
					return nil, errFails
				})
				ended <- err
			}()
		}
		synctest.Wait()
		if len(starting) != startsMax {
			t.Errorf("%d start at once", len(starting))
		}
		var full refusal
		if _, err := s.hold(t.Context(), "", 0, startAPI); !errors.As(err, &full) || full.code != 429 {
			t.Errorf("one more: %v", err)
		}
		close(fails)
		for range clustersMax {
			if err := <-ended; err == nil || err.Error() != errFails.Error() {
				t.Error(err)
			}
		}
		if _, err := s.hold(t.Context(), "", 0, startAPI); err != nil {
			t.Errorf("no place is left: %v", err)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}
