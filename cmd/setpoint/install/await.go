package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// pollInterval is how often it is asked whether what was started is ready, progressInterval how often that is told.
	pollInterval     = 500 * time.Millisecond
	progressInterval = 5 * time.Second
	// requestTimeout bounds one question.
	requestTimeout = 2 * time.Second
	// answerBytesMax bounds what is read of an answer.
	answerBytesMax = 1 << 20
)

var (
	errGaveUp = errors.New("it has given up")
	errBefore = errors.New("its run before this has not ended yet")
	errEnded  = errors.New("it ended at once, by a wrong setting or a fault of its own, and systemd starts it again and again")
)

// waiting is for what was started.
type waiting struct {
	what, unit string
	manager    *manager
	timeout    time.Duration
	out        io.Writer
}

// await asks until there is no error, says why not meanwhile, and stops when the unit has given up or ends by a mistake.
func (w *waiting) await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	told := time.Now()
	var last error
	for {
		err := w.judge(ctx, ask)
		if err == nil || errors.As(err, new(overError)) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err // that the time is over says nothing
		}
		if time.Since(told) >= progressInterval {
			told = time.Now()
			fmt.Fprintf(w.out, "waiting for %s: %v\n", w.what, w.reason(ctx, err))
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return w.why(context.WithoutCancel(ctx), fmt.Errorf("it is not ready after %s", w.timeout), last)
		}
	}
}

// overError ends the waiting.
type overError struct{ error }

func (o overError) Unwrap() error { return o.error }

// judge says how the unit is since it was started. Its run before answers, and may have ended badly, until it is over.
func (w *waiting) judge(ctx context.Context, ask func(context.Context) error) error {
	if !w.manager.isNew(ctx, w.unit) {
		return errBefore
	}
	err := ask(ctx)
	switch {
	case err == nil:
		return nil
	case w.manager.state(ctx, w.unit) == "failed":
		return overError{w.why(ctx, errGaveUp, err)}
	case w.manager.ended(ctx, w.unit):
		return overError{w.why(ctx, errEnded, err)}
	}
	return err
}

func (w *waiting) why(ctx context.Context, cause, last error) error {
	return fmt.Errorf("%s: %w: %s; 'journalctl -u %s' has more", w.what, cause, w.reason(ctx, last), w.unit)
}

// reason is what the unit said last, or an error if that is nothing.
func (w *waiting) reason(ctx context.Context, err error) string {
	if line := w.manager.lastLine(ctx, w.unit); line != "" {
		return line
	}
	return err.Error()
}

// fetch asks a server for a page, with a certificate.
func fetch(ctx context.Context, id *trust.Identity, url string) ([]byte, error) {
	config, err := id.ClientConfig()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answers %s", answer.Status)
	}
	return text, err
}
