package storage

import (
	"reflect"
	"strings"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// sharedValueBytesMin is the size of a stored value from which on it is worth to look for texts to share.
	sharedValueBytesMin = 4 << 10
	// sharedTextPart of the value is the least that a text is shared for: so few are looked for, and a text that outlives its object keeps
	// at most that many times its own size.
	sharedTextPart = 16
	// soughtBytes of a text, behind its length, are looked for in the value.
	soughtBytes = 24
)

// shareTexts makes the large texts of an object, in its annotations and in maps such as a ConfigMap's data, parts of the protobuf value
// that it was decoded from. The record keeps that value, so without this such an object takes its size twice. Values never change.
func shareTexts(obj resource.Object, value []byte) {
	if len(value) < sharedValueBytesMin {
		return
	}
	whole := unsafe.String(unsafe.SliceData(value), len(value))
	shareIn(obj.GetAnnotations(), whole)
	fields := reflect.ValueOf(obj).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Type() == reflect.TypeFor[map[string]string]() {
			shareIn(f.Interface().(map[string]string), whole)
		}
	}
}

func shareIn(texts map[string]string, whole string) {
	for name, text := range texts {
		if len(text)*sharedTextPart >= len(whole) {
			texts[name] = partOf(whole, text)
		}
	}
}

// partOf returns the text as a part of whole, where it is behind its length. One that is found elsewhere first is returned as it is.
func partOf(whole, text string) string {
	length := protowire.SizeVarint(uint64(len(text)))
	sought := string(protowire.AppendVarint(nil, uint64(len(text)))) + text[:min(len(text), soughtBytes)]
	at := strings.Index(whole, sought)
	if at < 0 || !strings.HasPrefix(whole[at+length:], text) {
		return text
	}
	return whole[at+length:][:len(text)]
}
