package table

import (
	"context"
	"net/http"
	"strings"
)

type wholeObjectsKey struct{}

// WithAccept notes for List and Watch whether the client may ask for another form of the
// objects, a table or their metadata, which is made from typed lists.
func WithAccept(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, accept := range r.Header.Values("Accept") {
			if strings.Contains(accept, "as=") {
				next(w, r)
				return
			}
		}
		next(w, r.WithContext(context.WithValue(r.Context(), wholeObjectsKey{}, true)))
	}
}

// TakesWholeObjects tells, of a request that WithAccept has seen, that no other form is asked for.
func TakesWholeObjects(ctx context.Context) bool { return ctx.Value(wholeObjectsKey{}) != nil }
