package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"
)

const (
	// patience is how long a registry may keep a pull waiting for an answer, or for patienceBytes of it. containerd's.
	patience      = 5 * time.Minute
	patienceBytes = 64 << 10
)

// errImpatient ends the pull from a registry that keeps it waiting. Pulls that wait would keep others from beginning.
var errImpatient = fmt.Errorf("the registry gave less than %d KiB in %v", patienceBytes>>10, patience)

// impatient ends requests of a registry that gives nothing, or next to nothing, and bounds its manifests.
type impatient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(patience, func() { cancel(errImpatient) })
	response, err := i.RoundTripper.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = reason(ctx, err)
		cancel(nil)
		return nil, err
	}
	body := &impatientBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel}
	response.Body = body
	if asksManifest(request) {
		response.Body = &closing{io.NopCloser(&atMost{body, manifestBytesMax, errManifestTooLarge}), body}
	}
	return response, nil
}

// asksManifest tells whether a manifest is asked for, also after the registry has sent the request elsewhere. Repositories may have
// "manifests" in their names; of a manifest it is the last part but one.
func asksManifest(request *http.Request) bool {
	for request.Response != nil {
		request = request.Response.Request
	}
	return path.Base(path.Dir(request.URL.Path)) == "manifests"
}

// reason is why a request has ended.
func reason(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errImpatient) {
		return errImpatient
	}
	return err
}

// impatientBody fails when reads have waited for patience in all since it gave patienceBytes.
type impatientBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	waited time.Duration
	came   int
}

// Read implements io.Reader.
func (b *impatientBody) Read(p []byte) (int, error) {
	begin := time.Now()
	timer := time.AfterFunc(patience-b.waited, func() { b.cancel(errImpatient) })
	n, err := b.ReadCloser.Read(p)
	timer.Stop()
	b.waited += time.Since(begin)
	if b.came += n; b.came >= patienceBytes {
		b.waited, b.came = 0, 0
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, reason(b.ctx, err)
}

// Close implements io.Closer.
func (b *impatientBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
