package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// listOf is a list with a header and no items, and its items beside it.
func listOf(names ...string) *List {
	header := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}}
	l := &List{Header: header}
	full := header.DeepCopy()
	full.Items = []corev1.ConfigMap{}
	header.Items = []corev1.ConfigMap{}
	for _, name := range names {
		object := configMap(name, map[string]string{"app": name})
		l.Items = append(l.Items, &Cached{object: object})
		full.Items = append(full.Items, *object)
	}
	l.Full = func() runtime.Object { return full.DeepCopy() }
	return l
}

// TestAListIsWrittenAsUpstreamWritesIt: to the byte, in every form, however many items it has.
func TestAListIsWrittenAsUpstreamWritesIt(t *testing.T) {
	var long []string // items whose sizes take one byte, two and three
	for _, size := range []int{1, 100, 127, 128, 1 << 13, 1 << 14, 1 << 20} {
		long = append(long, strings.Repeat("n", size))
	}
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		serializers := map[string]runtime.Serializer{info.MediaType: info.Serializer}
		if info.PrettySerializer != nil {
			serializers[info.MediaType+", pretty"] = info.PrettySerializer
		}
		for name, serializer := range serializers {
			encoder := scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion)
			for _, list := range []*List{listOf(), listOf("a"), listOf("a", "b", "c"), listOf(long...)} {
				want, err := runtime.Encode(encoder, list.Full())
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time the items' bytes are there
					if got, err := runtime.Encode(encoder, list); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
					}
				}
			}
		}
	}
}

// failingWriter takes so many bytes, and no more.
type failingWriter struct{ left int }

var errGone = errors.New("the client is gone")

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errGone
	}
	return len(b), nil
}

// TestAListThatCannotBeWrittenFails, at its first bytes and at the last ones.
func TestAListThatCannotBeWrittenFails(t *testing.T) {
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		whole, err := runtime.Encode(encoder, listOf("a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []int{0, firstWriteBytes, len(whole) - 1} {
			if err := encoder.Encode(listOf("a"), &failingWriter{left: left}); !errors.Is(err, errGone) {
				t.Errorf("%s after %d bytes: %v", info.MediaType, left, err)
			}
		}
		if err := encoder.Encode(listOf("a"), &failingWriter{left: len(whole)}); err != nil {
			t.Errorf("%s: %v", info.MediaType, err)
		}
	}
}

// TestFieldHeaders: the length that is counted is the one that is written, at each border.
func TestFieldHeaders(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1<<21 - 1, 1 << 21, 1 << 35} {
		var text bytes.Buffer
		w := bufio.NewWriter(&text)
		writeHeader(w, tagItems, size)
		_ = w.Flush()
		want := binary.AppendUvarint([]byte{tagItems}, uint64(size))
		if !bytes.Equal(text.Bytes(), want) || tagBytes+protowire.SizeVarint(uint64(size)) != len(want) {
			t.Errorf("%d: %x in %d bytes, want %x", size, text.Bytes(), tagBytes+protowire.SizeVarint(uint64(size)), want)
		}
	}
}
