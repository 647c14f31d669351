package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// sealedPrefix begins what upstream's transformers make of a value, unless they leave
// it as it is.
var sealedPrefix = []byte("k8s:enc:")

const (
	awaitLimit        = 5 * time.Second
	awaitPollInterval = 5 * time.Millisecond
)

var errSwapped = errors.New("it was encrypted under another key of the store")

// Encryption says how values are encrypted. Its methods may be called from many
// goroutines; apiserver/encryption has it.
type Encryption interface {
	// For returns what turns values of a resource into what is stored and back, or nil
	// if they are stored as they are.
	For(schema.GroupResource) value.Transformer
	// Generation changes whenever For may return something else.
	Generation() uint64
}

// Encrypt encrypts what is written from now on, once all servers can read it. Call it
// before the store is used.
func (s *Store) Encrypt(with Encryption) { s.codec.seals = &seals{with, s.log} }

// AwaitEncryption waits, in a store without objects, until what is written is encrypted:
// the servers agree on that in their first moment. It does not wait in any other store,
// nor longer than awaitLimit, as one of the servers may be too old.
func (s *Store) AwaitEncryption(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for s.log.Root().Len() == 0 && !s.codec.seals.active() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(awaitPollInterval):
		}
	}
}

// seals encrypts and decrypts values. An encrypted value is one encoding byte and what
// a transformer made of the storage key and the value: so a value that somebody moved to
// another key is found out, whichever provider encrypted it.
type seals struct {
	Encryption
	log Log
}

// active reports whether all servers can read encrypted values.
func (s *seals) active() bool { return s.log.Root().FeatureLevel >= raftstore.EncryptedValuesLevel }

// transformer returns nil for what is stored as it is.
func (s *seals) transformer(gr schema.GroupResource) value.Transformer {
	if s == nil {
		return nil
	}
	return s.For(gr)
}

// seal turns an encoded object into what is stored under the key.
func (s *seals) seal(ctx context.Context, gr schema.GroupResource, key string, plain []byte) ([]byte, error) {
	t := s.transformer(gr)
	if t == nil || !s.active() {
		return plain, nil
	}
	bound := make([]byte, 0, binary.MaxVarintLen64+len(key)+len(plain))
	bound = append(binary.AppendUvarint(bound, uint64(len(key))), key...)
	sealed, err := t.TransformToStorage(ctx, append(bound, plain...), value.DefaultContext(key))
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return nil, err // not yet
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !bytes.HasPrefix(sealed, sealedPrefix) { // the provider identity
		return plain, nil
	}
	return append(append(make([]byte, 0, 1+len(sealed)), command.EncodingEncrypted), sealed...), nil
}

// open returns the encoded object of a record. It is outdated if it would be stored in
// another way now. Errors are *unreadable.
func (s *seals) open(gr schema.GroupResource, r *record.Record) (plain []byte, outdated bool, err error) {
	sealed := len(r.Value) > 0 && r.Value[0] == command.EncodingEncrypted
	t := s.transformer(gr)
	switch {
	case t == nil && !sealed:
		return r.Value, false, nil
	case t == nil:
		t = identity.NewEncryptCheckTransformer()
	case len(r.Value) == 0:
		return nil, false, errUnknownEncoding
	}
	// Without its first byte a plain value is what upstream would store.
	out, outdated, err := t.TransformFromStorage(context.Background(), r.Value[1:], value.DefaultContext(r.Key))
	if err != nil {
		return nil, false, newUnreadable(r.Key, err)
	}
	if !sealed {
		return r.Value, outdated, nil
	}
	if plain, err = unbind(r.Key, out); err != nil {
		return nil, false, newUnreadable(r.Key, err)
	}
	return plain, outdated, nil
}

// unbind checks for which key a value was encrypted.
func unbind(key string, bound []byte) ([]byte, error) {
	n, length := binary.Uvarint(bound)
	if length <= 0 || n != uint64(len(key)) {
		return nil, errSwapped
	}
	plain, ours := bytes.CutPrefix(bound[length:], []byte(key))
	if !ours {
		return nil, errSwapped
	}
	return plain, nil
}
