package storage

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// keepOnly bounds the kept encodings during a test, which begins with none.
func keepOnly(t *testing.T, limitBytes int) {
	bound := func(limitBytes int) {
		k := keptEncodings
		k.mu.Lock()
		defer k.mu.Unlock()
		for k.first < len(k.order) {
			k.forgetOldest()
		}
		k.sweep()
		k.limitBytes = limitBytes
	}
	bound(limitBytes)
	t.Cleanup(func() { bound(encodingsBytesMax) })
}

// kept is what the encodings of these objects take.
func kept(items ...*Cached) (n int) {
	for _, c := range items {
		for e := c.encodings.Load(); e != nil; e = e.next.Load() {
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

// TestTheOldestEncodingsAreForgotten, each by itself, and made again for who asks.
func TestTheOldestEncodingsAreForgotten(t *testing.T) {
	const size = 1000
	keepOnly(t, 3*(size+encodingOverheadBytes))
	items, made := listOf("a", "b").Items, 0
	ask := func(i int, id apiruntime.Identifier, want int) {
		text, err := items[i].encoded(id, func() ([]byte, error) { made++; return make([]byte, size), nil })
		if err != nil || len(text) != size || made != want {
			t.Errorf("%s of %d: %d bytes (%v), %d were made, want %d", id, i, len(text), err, made, want)
		}
	}
	ask(0, jsonItem, 1)
	ask(0, protobufItem, 2)
	ask(1, jsonItem, 3)
	ask(1, protobufItem, 4) // one too many
	ask(0, protobufItem, 4)
	ask(1, jsonItem, 4)
	ask(0, jsonItem, 5) // the oldest was forgotten, and now the second is
	ask(1, jsonItem, 5)
	ask(1, protobufItem, 5)
	ask(0, protobufItem, 6)
}

// TestForgettingWhileOthersAsk: everybody gets the encoding that was asked for, and what is counted is what is kept.
func TestForgettingWhileOthersAsk(t *testing.T) {
	const limit = 10 * encodingOverheadBytes
	keepOnly(t, limit)
	items := listOf("a", "b", "c").Items
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				item, id := items[i%len(items)], apiruntime.Identifier(rune('a'+i%7))
				want := item.object.GetName() + string(id)
				if got, err := item.encoded(id, func() ([]byte, error) { return []byte(want), nil }); err != nil || string(got) != want {
					t.Errorf("got %q, want %q (%v)", got, want, err)
				}
			}
		})
	}
	all.Wait()
	count := 0
	for _, c := range items {
		for e := c.encodings.Load(); e != nil; e = e.next.Load() {
			count++
		}
	}
	if got := count*encodingOverheadBytes + kept(items...); got != keptEncodings.bytes || got > limit {
		t.Errorf("%d bytes are kept, %d are counted, want the same and no more than %d", got, keptEncodings.bytes, limit)
	}
}

// TestKeptEncodingsHoldNoObject: those of objects that are gone leave before those of one that is not, and the queue stays short.
func TestKeptEncodingsHoldNoObject(t *testing.T) {
	const objects, rounds = 100, 20
	keepOnly(t, 2*objects*(1+encodingOverheadBytes))
	one := func() ([]byte, error) { return make([]byte, 1), nil }
	stays := listOf("stays").Items[0]
	if _, err := stays.encoded(jsonItem, one); err != nil {
		t.Fatal(err)
	}
	var gone []weak.Pointer[Cached]
	for range rounds {
		for range objects {
			c := listOf("a").Items[0]
			if _, err := c.encoded(jsonItem, one); err != nil {
				t.Fatal(err)
			}
			gone = append(gone, weak.Make(c))
		}
		runtime.GC()
		if kept(stays) == 0 {
			t.Fatal("the encoding of the object that stays made room for those of objects that are gone")
		}
	}
	for _, c := range gone {
		if c.Value() != nil {
			t.Fatal("an object is held by its encodings")
		}
	}
	if most := 8 * objects; cap(keptEncodings.order) > most {
		t.Errorf("room for %d encodings, want no more than for %d", cap(keptEncodings.order), most)
	}
}

// countedObject counts how often it is encoded, and how often its size is.
type countedObject struct {
	*corev1.ConfigMap
	*encodes
}

type encodes struct{ json, protobuf, sizes int }

func (c countedObject) MarshalJSON() ([]byte, error) { c.json++; return json.Marshal(c.ConfigMap) }
func (c countedObject) Marshal() ([]byte, error)     { c.protobuf++; return c.ConfigMap.Marshal() }
func (c countedObject) Size() int                    { c.sizes++; return c.ConfigMap.Size() }

// countedList is a list of items that are counted together, and a function that encodes the list and says what that took.
func countedList(t *testing.T, names ...string) (l *List, encode func(mediaType string) encodes) {
	l, count := listOf(names...), &encodes{}
	for _, item := range l.Items {
		item.object = countedObject{item.object.(*corev1.ConfigMap), count}
	}
	return l, func(mediaType string) encodes {
		t.Helper()
		*count = encodes{}
		info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		if err := encoder.Encode(l, io.Discard); err != nil {
			t.Fatal(err)
		}
		return *count
	}
}

// TestListsThatFitAreNotEncodedAgain: with room for both forms neither is; with room for one, that which is asked for again is not.
func TestListsThatFitAreNotEncodedAgain(t *testing.T) {
	const items, jsonForm, protobufForm = 20, apiruntime.ContentTypeJSON, apiruntime.ContentTypeProtobuf
	names := strings.Split(strings.Repeat("n", items), "")
	l, encode := countedList(t, names...)
	keepOnly(t, 1<<20)
	encode(jsonForm)
	oneForm := kept(l.Items...) + items*encodingOverheadBytes // JSON takes more
	for _, tc := range []struct {
		name       string
		limitBytes int
		lists      []string
		last       encodes
	}{
		{"room for both", 2 * oneForm, []string{protobufForm, jsonForm, protobufForm}, encodes{}},
		{"room for both, the other first", 2 * oneForm, []string{jsonForm, protobufForm, jsonForm}, encodes{}},
		{"room for one", oneForm, []string{protobufForm, jsonForm, jsonForm}, encodes{}},
		{"room for one, the other", oneForm, []string{jsonForm, protobufForm, protobufForm}, encodes{}},
		{"room for more than one", oneForm * 4 / 3, []string{protobufForm, jsonForm, jsonForm}, encodes{}},
		{"after a list of the other form", oneForm * 4 / 3, []string{jsonForm, protobufForm, jsonForm, jsonForm}, encodes{}},
		{"room for none", 0, []string{jsonForm, jsonForm}, encodes{json: items}},
	} {
		keepOnly(t, tc.limitBytes)
		var last encodes
		for _, form := range tc.lists {
			last = encode(form)
		}
		if last != tc.last {
			t.Errorf("%s: the last of %q took %+v, want %+v", tc.name, tc.lists, last, tc.last)
		}
	}
}

// TestLargeListsCountOnlyWhatIsNotKept: the length of an encoding that is kept is known.
func TestLargeListsCountOnlyWhatIsNotKept(t *testing.T) {
	const itemBytes, items = 4 << 20, listHeldBytes/(4<<20) + 4
	keepOnly(t, 1<<30)
	var names []string
	for range items {
		names = append(names, strings.Repeat("n", itemBytes/2)) // it is a label, too
	}
	_, encode := countedList(t, names...)
	if first := encode(apiruntime.ContentTypeProtobuf); first.protobuf != items || first.sizes == 0 {
		t.Errorf("the first list took %+v, want %d encodings and some sizes: it is not held in memory at once", first, items)
	}
	if second := encode(apiruntime.ContentTypeProtobuf); second != (encodes{}) {
		t.Errorf("the second list took %+v, want nothing", second)
	}
}
