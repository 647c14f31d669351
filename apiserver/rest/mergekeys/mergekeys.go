package mergekeys

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Guard checks the strategic merge patches of objects like obj before next; refuse
// answers those that it does not let through. At most limitBytes are looked at: a
// larger body is for next to refuse. Affordable finds the patch in the context of the request.
func Guard(
	obj runtime.Object,
	limitBytes int64,
	refuse func(http.ResponseWriter, *http.Request, error),
	next http.HandlerFunc,
) http.HandlerFunc {
	shape, err := strategicpatch.NewPatchMetaFromStruct(obj)
	if err != nil {
		return next // what has no Go type takes no such patches
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); contentType != string(types.StrategicMergePatchType) {
			next(w, r)
			return
		}
		body, failed := io.ReadAll(io.LimitReader(r.Body, limitBytes+1))
		patch := map[string]any{}
		if failed == nil && json.Unmarshal(body, &patch) == nil { // else next says best what is wrong
			if err := check(patch, shape); err != nil {
				refuse(w, r, err)
				return
			}
			if hasList(patch) {
				r = r.WithContext(context.WithValue(r.Context(), pendingKey{}, &pending{patch, len(body), shape}))
			}
		}
		r.Body = restored{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		next(w, r)
	}
}

// restored is a body of which a part was read.
type restored struct {
	io.Reader
	io.Closer
}

// check walks the patch as upstream does; what it does not know, upstream
// refuses or ignores.
func check(patch map[string]any, shape strategicpatch.LookupPatchMeta) error {
	for key, value := range patch {
		switch value := value.(type) {
		case map[string]any:
			if below, _, err := shape.LookupPatchMetadataForStruct(key); err == nil {
				if err := check(value, below); err != nil {
					return err
				}
			}
		case []any:
			if err := checkItems(key, value, shape); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkItems(key string, items []any, shape strategicpatch.LookupPatchMeta) error {
	below, meta, err := shape.LookupPatchMetadataForSlice(field(key))
	if err != nil {
		return nil
	}
	for i, item := range items {
		fields, isMap := item.(map[string]any)
		if !isMap {
			continue
		}
		switch fields[meta.GetPatchMergeKey()].(type) {
		case map[string]any, []any:
			return fmt.Errorf("%s[%d].%s must be a single value: items of this list are merged by it", key, i, meta.GetPatchMergeKey())
		}
		if err := check(fields, below); err != nil {
			return err
		}
	}
	return nil
}
