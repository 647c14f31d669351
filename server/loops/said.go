package loops

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"strings"
)

// seed makes hashes of this process.
var seed = maphash.MakeSeed()

// protobufMagic begins an object in Kubernetes' protobuf form.
var protobufMagic = []byte("k8s\x00")

// Numbers of fields in protobuf: of runtime.Unknown, of every object, and of ObjectMeta.
const (
	fieldRaw             = 2
	fieldMetadata        = 1
	fieldName            = 1
	fieldResourceVersion = 6
	fieldGeneration      = 7
	fieldManagedFields   = 17
)

// said is a hash of what a write says, without what the server itself sets.
func said(method, contentType string, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(method)
	switch object, ok := bytes.CutPrefix(body, protobufMagic); {
	case ok:
		hashObject(&h, field(object, fieldRaw))
	case strings.HasPrefix(contentType, "application/json"):
		_, _ = h.Write(withoutVersions(body))
	default:
		_, _ = h.Write(body)
	}
	return h.Sum64()
}

func hashObject(h *maphash.Hash, object []byte) {
	eachField(object, func(number uint64, whole, value []byte) {
		if number != fieldMetadata {
			_, _ = h.Write(whole)
			return
		}
		eachField(value, func(number uint64, whole, _ []byte) {
			if number != fieldResourceVersion && number != fieldGeneration && number != fieldManagedFields {
				_, _ = h.Write(whole)
			}
		})
	})
}

// withoutVersions is the object in JSON without what the server itself sets.
func withoutVersions(body []byte) []byte {
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		return body
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, name)
		}
	}
	stripped, err := json.Marshal(object)
	if err != nil {
		return body
	}
	return stripped
}

// nameIn is the name of the object in a body.
func nameIn(body []byte) string {
	if object, ok := bytes.CutPrefix(body, protobufMagic); ok {
		return string(field(field(field(object, fieldRaw), fieldMetadata), fieldName))
	}
	var object struct{ Metadata struct{ Name string } }
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}

// field is the last value of a field with a length.
func field(message []byte, wanted uint64) (found []byte) {
	eachField(message, func(number uint64, _, value []byte) {
		if number == wanted {
			found = value
		}
	})
	return found
}

// eachField calls do with the number of each field of a protobuf message, its bytes and, of one with a length, its value. It
// ends at what is no field.
func eachField(message []byte, do func(number uint64, whole, value []byte)) {
	for len(message) > 0 {
		tag, begin := binary.Uvarint(message)
		if begin <= 0 {
			return
		}
		end, value := fieldEnd(message, begin, tag&7)
		if end < 0 || end > len(message) {
			return
		}
		do(tag>>3, message[:end], value)
		message = message[end:]
	}
}

// fieldEnd is where a field of the wire type ends that begins after its tag; -1: nowhere.
func fieldEnd(message []byte, begin int, wireType uint64) (end int, value []byte) {
	switch wireType {
	case 0: // a number
		_, n := binary.Uvarint(message[begin:])
		if n <= 0 {
			return -1, nil
		}
		return begin + n, nil
	case 1: // 8 bytes
		return begin + 8, nil
	case 5: // 4 bytes
		return begin + 4, nil
	case 2: // a length and as many bytes
		length, n := binary.Uvarint(message[begin:])
		if n <= 0 || length > uint64(len(message)-begin-n) {
			return -1, nil
		}
		end = begin + n + int(length)
		return end, message[begin+n : end]
	}
	return -1, nil
}
