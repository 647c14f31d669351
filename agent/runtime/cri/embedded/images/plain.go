package images

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindowBytesMax is how much memory a layer may want for being decompressed: what zstd itself takes without being asked for more.
// The library would give it 512 MiB.
const zstdWindowBytesMax = 128 << 20

var (
	gzipMark = []byte{0x1f, 0x8b}
	zstdMark = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// plain is the tar of a layer as a registry has it. What it begins with says how it is compressed: media types lie.
func plain(layer v1.Layer) (io.ReadCloser, error) {
	compressed, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := decompressed(compressed)
	if err != nil {
		return nil, errors.Join(err, compressed.Close())
	}
	return &closing{content, compressed}, nil
}

// decompressed reads what is compressed by gzip, zstd or not at all. It is to be closed before its source.
func decompressed(source io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(source, copyBufferBytes)
	// What is shorter than a mark is neither: reading it will tell.
	switch head, _ := buffered.Peek(len(zstdMark)); {
	case bytes.HasPrefix(head, gzipMark):
		return gzip.NewReader(buffered)
	case bytes.Equal(head, zstdMark):
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(zstdWindowBytesMax), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}

// closing is a reader whose source has to be closed after it.
type closing struct {
	io.ReadCloser
	source io.Closer
}

// Close implements io.Closer.
func (c *closing) Close() error {
	return errors.Join(c.ReadCloser.Close(), c.source.Close())
}
