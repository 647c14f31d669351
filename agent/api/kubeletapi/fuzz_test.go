package kubeletapi

import (
	"net/url"
	"testing"
	"time"
)

// FuzzLogOptions reads the parameters of a log request.
func FuzzLogOptions(f *testing.F) {
	for _, query := range []string{"tailLines=-1", "sinceTime=9999-12-31T23:59:59Z&limitBytes=1", "sinceSeconds=9223372036854775807&follow=true", "tailLines=10&timestamps=true"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		opts, refused := logOptions(values, time.Unix(1_800_000_000, 0))
		if refused == nil && (opts.TailLines != nil && *opts.TailLines < 0 || opts.LimitBytes != nil && *opts.LimitBytes < 1) {
			t.Errorf("%s: %+v", query, opts)
		}
	})
}
