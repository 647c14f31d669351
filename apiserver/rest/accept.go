package rest

import (
	"context"
	"net/http"
	"strings"
)

type wholeObjectsKey struct{}

// withAccept notes for List and Watch whether the client may ask for another form of the
// objects, a table or their metadata, which is made from typed lists.
func withAccept(next http.HandlerFunc) http.HandlerFunc {
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

func takesWholeObjects(ctx context.Context) bool { return ctx.Value(wholeObjectsKey{}) != nil }
