package images

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// trickle is a registry that waits before it answers, and before each piece of its answer.
type trickle struct {
	first, each   time.Duration
	piece, pieces int
}

func (s trickle) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := pause(r.Context(), s.first); err != nil {
		return nil, err
	}
	return &http.Response{Body: &trickleBody{s, r.Context()}}, nil
}

type trickleBody struct {
	trickle
	ctx context.Context
}

func (b *trickleBody) Read(p []byte) (int, error) {
	if b.pieces == 0 {
		return 0, io.EOF
	}
	b.pieces--
	return min(b.piece, len(p)), pause(b.ctx, b.each)
}

func (b *trickleBody) Close() error { return nil }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// TestPatience: who gives nothing, or next to nothing, is left; who is slow is not, nor is the time counted in which nobody reads.
func TestPatience(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		registry trickle
		unpacks  time.Duration // after each piece
		want     error
		lasts    time.Duration
	}{
		"no answer":                   {trickle{first: hour}, 0, errImpatient, patience},
		"nothing after an answer":     {trickle{each: hour, piece: 1, pieces: 1}, 0, errImpatient, patience},
		"a byte each second":          {trickle{each: time.Second, piece: 1, pieces: 1 << 20}, 0, errImpatient, patience},
		"a late answer":               {trickle{first: patience - 1, each: time.Second, piece: 1 << 10, pieces: 3}, 0, nil, patience - 1 + 3*time.Second},
		"slow":                        {trickle{each: time.Second, piece: 1 << 10, pieces: 1000}, 0, nil, 1000 * time.Second},
		"much, and then nothing":      {trickle{each: patience - 1, piece: patienceBytes, pieces: 10}, 0, nil, 10 * (patience - 1)},
		"a disk that takes its time":  {trickle{each: time.Second, piece: 1 << 10, pieces: 100}, hour, nil, 100 * (hour + time.Second)},
		"nothing after a good part":   {trickle{each: patience + 1, piece: patienceBytes, pieces: 10}, 0, errImpatient, patience},
		"little that comes to an end": {trickle{each: time.Minute, piece: 1, pieces: 4}, 0, nil, 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := fetchSlowly(t, c.registry, c.unpacks)
				if !errors.Is(err, c.want) || time.Since(begin) != c.lasts {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(begin), c.want, c.lasts)
				}
			})
		})
	}
}

func fetchSlowly(t *testing.T, registry http.RoundTripper, unpacks time.Duration) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry/v2/app/blobs/sha256:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := impatient{registry}.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for buffer := make([]byte, 1<<20); ; {
		switch _, err := response.Body.Read(buffer); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		time.Sleep(unpacks)
	}
}
