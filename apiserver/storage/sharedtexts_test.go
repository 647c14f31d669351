package storage

import (
	"maps"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/raftstore/record"
)

// within counts the bytes of texts that lie in the value.
func within(value []byte, texts map[string]string) (n int) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(value)))
	for _, text := range texts {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= begin && at < begin+uintptr(len(value)) {
			n += len(text)
		}
	}
	return n
}

// TestLargeTextsAreNotKeptTwice: of a decoded object they are those of its record, also where one begins as another does. Small ones are
// their own, so that who keeps one does not keep the record.
func TestLargeTextsAreNotKeptTwice(t *testing.T) {
	table := newTestStore(0).Table(configMaps)
	large := strings.Repeat("0123456789abcdef", 4<<10)
	data := map[string]string{"small": "text", "a": large, "b": large + "b", "c": large[1:], "empty": ""}
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", Annotations: map[string]string{"last": large[:60000], "note": "short"}}, Data: data,
	}
	c := table.store.codec
	value, err := c.encode(table.stored, written)
	if err != nil {
		t.Fatal(err)
	}
	cached, err := c.decode(table.stored, &record.Record{Key: "k", Value: value})
	if err != nil {
		t.Fatal(err)
	}
	got := cached.object.(*corev1.ConfigMap)
	if !maps.Equal(got.Data, data) || !maps.Equal(got.Annotations, written.Annotations) {
		t.Error("it was decoded as another object")
	}
	if n, want := within(value, got.Data), 3*len(large); n != want {
		t.Errorf("%d bytes of data are the record's, want %d", n, want)
	}
	if n := within(value, got.Annotations); n != 60000 {
		t.Errorf("%d bytes of annotations are the record's, want 60000", n)
	}
}

// TestATextIsOnlyFoundBehindItsLength, where the whole of it is.
func TestATextIsOnlyFoundBehindItsLength(t *testing.T) {
	text := strings.Repeat("t", 100)
	for _, tc := range []struct {
		name, whole string
		want        int
	}{
		{"there", "xx\x64" + text, 100},
		{"without its length", "xx" + text, 0},
		{"another begins like it", "xx\x64" + text[:50] + "u" + text, 0},
		{"cut off", "xx\x64" + text[:99], 0},
		{"not there", "xx", 0},
	} {
		got := partOf(tc.whole, text)
		if n := within(unsafe.Slice(unsafe.StringData(tc.whole), len(tc.whole)), map[string]string{"": got}); got != text || n != tc.want {
			t.Errorf("%s: %d bytes of %q are shared, want %d", tc.name, n, got, tc.want)
		}
	}
}
