package discovery

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// document is one OpenAPI document. It is built when it is first asked for and kept
// compressed, a tenth of its size; all forms share the hash of what it is built from.
type document struct {
	hash           string
	json, protobuf compressed
}

// compressed is one form of a document.
type compressed struct {
	get func() ([]byte, error)
}

func newDocument(hash string, build func() ([]byte, error), toProtobuf func([]byte) ([]byte, error)) *document {
	d := &document{hash: hash}
	d.json.get = sync.OnceValues(func() ([]byte, error) { return compressResult(build()) })
	d.protobuf.get = sync.OnceValues(func() ([]byte, error) {
		text, err := d.text()
		if err != nil {
			return nil, err
		}
		return compressResult(toProtobuf(text))
	})
	return d
}

func (d *document) text() ([]byte, error) {
	packed, err := d.json.get()
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func compressResult(text []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeCompressed sends a body as it is kept if the client understands gzip, else unpacked.
func writeCompressed(w http.ResponseWriter, request *http.Request, body []byte) {
	if strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(body) // a client that went away needs no answer
		return
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, reader)
}
