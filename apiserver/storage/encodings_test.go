package storage

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// keepOnly bounds the kept encodings during a test.
func keepOnly(t *testing.T, limitBytes int) {
	bound := func(limitBytes int) {
		keptEncodings.mu.Lock()
		defer keptEncodings.mu.Unlock()
		keptEncodings.limitBytes = limitBytes
	}
	bound(limitBytes)
	t.Cleanup(func() { bound(encodingsBytesMax) })
}

// kept is what the encodings of these objects take.
func kept(items ...*Cached) (n int) {
	for _, c := range items {
		for e := c.encodings.Load(); e != nil; e = e.next {
			n += cap(e.bytes)
		}
	}
	return n
}

// TestLargeListsKeepFewEncodings: a list of much more than the bound is written as upstream writes it, and what is kept of it stays below
// the bound. Nor are all its items held at once.
func TestLargeListsKeepFewEncodings(t *testing.T) {
	const limit, itemBytes = 8 << 20, 2 << 20
	keepOnly(t, limit)
	var names []string
	for i := range 2 * listHeldBytes / itemBytes {
		names = append(names, strings.Repeat(string(rune('a'+i%26)), itemBytes/2)) // it is a label, too
	}
	list := listOf(names...)
	for _, mediaType := range []string{apiruntime.ContentTypeJSON, apiruntime.ContentTypeProtobuf} {
		info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		want, err := apiruntime.Encode(encoder, list.Full())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := apiruntime.Encode(encoder, list); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d, or others (%v)", mediaType, len(got), len(want), err)
		}
		if n := kept(list.Items...); n == 0 || n > limit {
			t.Errorf("%s: %d bytes of encodings are kept, want some, and no more than %d", mediaType, n, limit)
		}
	}
	held, _, err := list.protobufItems()
	if n := len(bytes.Join(held, nil)); err != nil || n < listHeldBytes || n > listHeldBytes+2*itemBytes {
		t.Errorf("%d bytes are held while a list is written, want %d and no more than one item beside it (%v)", n, listHeldBytes, err)
	}
}

// TestTheOldestEncodingsAreForgotten, all of one object together, and made again for who asks.
func TestTheOldestEncodingsAreForgotten(t *testing.T) {
	const size = 1000
	keepOnly(t, 3*(size+encodingOverheadBytes))
	items, made := listOf("a", "b", "c").Items, 0
	ask := func(i int, id apiruntime.Identifier) {
		text, err := items[i].encoded(id, func() ([]byte, error) { made++; return make([]byte, size), nil })
		if err != nil || len(text) != size {
			t.Errorf("%d bytes (%v)", len(text), err)
		}
	}
	ask(0, jsonItem)
	ask(0, protobufItem)
	ask(1, jsonItem)
	ask(2, jsonItem) // one too many
	if a, b, c := kept(items[0]), kept(items[1]), kept(items[2]); a != 0 || b < size || c < size {
		t.Errorf("%d, %d and %d bytes are kept, want none of the first object", a, b, c)
	}
	if ask(1, jsonItem); made != 4 {
		t.Errorf("%d were made, want 4: the newer are kept", made)
	}
	if ask(0, jsonItem); made != 5 {
		t.Errorf("%d were made, want 5: the oldest was forgotten", made)
	}
}

// TestKeptEncodingsHoldNoObject: it can go while its encodings count, and then its place in the queue is another's.
func TestKeptEncodingsHoldNoObject(t *testing.T) {
	k := &encodingsKept{limitBytes: 1 << 30}
	const objects, rounds = 100, 20
	var gone []weak.Pointer[Cached]
	for range rounds {
		for range objects {
			c := listOf("a").Items[0]
			k.add(c, 1)
			gone = append(gone, weak.Make(c))
		}
		runtime.GC()
	}
	for _, c := range gone {
		if c.Value() != nil {
			t.Fatal("an object is held by its encodings")
		}
	}
	if most := 4 * objects; cap(k.order) > most || k.bytes > most*(1+encodingOverheadBytes) {
		t.Errorf("room for %d encodings and %d bytes are counted, want no more than for %d", cap(k.order), k.bytes, most)
	}
}
