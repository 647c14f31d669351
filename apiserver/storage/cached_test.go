package storage

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestAnEncodingIsMadeOnce for each name, also of one that was made between others.
func TestAnEncodingIsMadeOnce(t *testing.T) {
	cached := &Cached{object: configMap("a", nil)}
	made := map[runtime.Identifier]int{}
	for _, id := range []runtime.Identifier{"json", "proto", "json", "yaml", "proto"} {
		encode := func(_ runtime.Object, w io.Writer) error {
			made[id]++
			_, err := io.WriteString(w, string(id))
			return err
		}
		var out bytes.Buffer
		if err := cached.CacheEncode(id, encode, &out); err != nil || out.String() != string(id) {
			t.Errorf("%s is encoded as %q (%v)", id, &out, err)
		}
	}
	for _, id := range []runtime.Identifier{"json", "proto", "yaml"} {
		if made[id] != 1 {
			t.Errorf("%s was made %d times", id, made[id])
		}
	}
}

// TestAnEncodingThatFailsWritesNothing, and fails for everybody: a half of an object is none.
func TestAnEncodingThatFailsWritesNothing(t *testing.T) {
	cached, broken := &Cached{object: configMap("a", nil)}, errors.New("cannot be encoded")
	for range 2 {
		var out bytes.Buffer
		err := cached.CacheEncode("json", func(_ runtime.Object, w io.Writer) error {
			_, err := io.WriteString(w, "half")
			return errors.Join(err, broken)
		}, &out)
		if !errors.Is(err, broken) || out.Len() > 0 {
			t.Errorf("wrote %q (%v)", &out, err)
		}
	}
}
