package wire_test

import (
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

func TestReaderGivesBackWhatWasAppended(t *testing.T) {
	b := wire.AppendUvarint([]byte{9}, 0, 1<<63)
	b = wire.AppendString(b, "key")
	b = wire.AppendString(b, []byte{1, 2})
	r := wire.NewReader(b)
	if got := r.Byte(); got != 9 {
		t.Errorf("byte %d", got)
	}
	if a, b := r.Uvarint(), r.Uvarint(); a != 0 || b != 1<<63 {
		t.Errorf("numbers %d %d", a, b)
	}
	if got := r.String(); got != "key" {
		t.Errorf("string %q", got)
	}
	if got := r.Bytes(); len(got) != 2 || cap(got) != 2 {
		t.Errorf("bytes %v with capacity %d", got, cap(got))
	}
	if r.Err() != nil || r.Len() != 0 {
		t.Errorf("error %v, %d bytes left", r.Err(), r.Len())
	}
}

// TestLengthsAtTheirBounds: one byte is a string, and as many items may follow as the rest of the input can hold.
func TestLengthsAtTheirBounds(t *testing.T) {
	r := wire.NewReader([]byte{1, 'a', 0, 2, 'b', 'c', 'd', 'e'})
	if one, none := r.Bytes(), r.Bytes(); string(one) != "a" || none != nil {
		t.Errorf("bytes %q and %q", one, none)
	}
	if n := r.Count(2); n != 2 || r.Err() != nil {
		t.Errorf("count %d (%v)", n, r.Err())
	}
	r = wire.NewReader([]byte{3, 'b', 'c', 'd', 'e'})
	if n := r.Count(2); n != 0 || !errors.Is(r.Err(), wire.ErrMalformed) {
		t.Errorf("a count of more than there is room for is %d (%v)", n, r.Err())
	}
}

func TestReaderStopsAtTheFirstFailure(t *testing.T) {
	cases := []struct {
		name string
		data []byte
		read func(*wire.Reader)
	}{
		{"byte of nothing", nil, func(r *wire.Reader) { r.Byte() }},
		{"number without end", []byte{0x80, 0x80}, func(r *wire.Reader) { r.Uvarint() }},
		{"number too large", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, func(r *wire.Reader) { r.Uvarint() }},
		{"string longer than input", []byte{5, 'a'}, func(r *wire.Reader) { _ = r.String() }},
		{"length that overflows", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, func(r *wire.Reader) { r.Bytes() }},
		{"count beyond input", []byte{200, 1, 0, 0}, func(r *wire.Reader) { r.Count(2) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := wire.NewReader(c.data)
			c.read(r)
			if !errors.Is(r.Err(), wire.ErrMalformed) {
				t.Fatalf("got %v", r.Err())
			}
			first := r.Err()
			r.Fail(errors.New("later"))
			if r.Byte() != 0 || r.Uvarint() != 0 || r.Bytes() != nil || !errors.Is(r.Err(), first) {
				t.Error("reader went on after a failure")
			}
		})
	}
}
