package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"k8s.io/apimachinery/pkg/types"
)

// ErrDamaged is returned by New for a file whose checksum does not fit.
var ErrDamaged = errors.New("the record of resource claims is damaged")

// record is what the file keeps of a claim.
type record struct {
	Namespace, Name string
	UID             types.UID
	// Pods use it.
	Pods []types.UID
	// Drivers are those of its allocation, and what each has prepared: nothing before it has answered.
	Drivers map[string][]device
}

// device is one that a driver has prepared.
type device struct {
	Pool, Name string
	// Requests of the claim that it satisfies; none means all.
	Requests []string
	// CDI are its names for the runtime.
	CDI     []string
	ShareID *string
}

func (r *record) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

type file struct {
	Claims   json.RawMessage
	Checksum uint32
}

func encode(records []record) ([]byte, error) {
	data, err := json.Marshal(records)
	if err != nil {
		return nil, err
	}
	return json.Marshal(file{Claims: data, Checksum: crc32.ChecksumIEEE(data)})
}

func decode(data []byte) ([]record, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if crc32.ChecksumIEEE(f.Claims) != f.Checksum {
		return nil, ErrDamaged
	}
	var records []record
	if err := json.Unmarshal(f.Claims, &records); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return records, nil
}
