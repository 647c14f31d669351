package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/util/dump"
)

// ErrDamaged is of a file whose checksum does not fit.
var ErrDamaged = errors.New("checkpoint is corrupted")

// envelope are the fields beside those of the content, which are for readers of earlier versions.
type envelope struct {
	Data         string `json:"data"`
	DataChecksum uint64 `json:"dataChecksum"`
}

// Encode is a file with the content, whose JSON is an object.
func Encode(content any) ([]byte, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(data, &own); err != nil {
		return nil, err
	}
	for name, value := range own {
		fields[name] = value
	}
	// Kubelets of earlier versions do not check a checksum of 0.
	fields["checksum"], fields["data"], fields["dataChecksum"] = 0, string(data), checksum(string(data))
	return json.Marshal(fields)
}

// Decode reads the content of a file.
func Decode(file []byte, content any) error {
	var e envelope
	if err := json.Unmarshal(file, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if checksum(e.Data) != e.DataChecksum {
		return ErrDamaged
	}
	if err := json.Unmarshal([]byte(e.Data), content); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// checksum is a kubelet's, of how package dump prints the text.
func checksum(data string) uint64 {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%v", dump.ForHash(data))
	return uint64(hash.Sum32())
}
