package wireguardkey

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Annotation of a Node has what the node tells, in JSON.
const Annotation = "setpoint.io/pod-network"

const wireGuardKeyBytes = 32

// Read reads a public key in base64 and returns the one text by which it is compared; nothing is no key. Base64
// lets several texts be one key: with line breaks, and with other last bits.
func Read(text string) (string, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return "", err
	case len(key) != 0 && len(key) != wireGuardKeyBytes:
		return "", fmt.Errorf("a key of WireGuard has %d bytes, not %d", wireGuardKeyBytes, len(key))
	}
	return base64.StdEncoding.EncodeToString(key), nil
}

// Told is the key that a Node's annotations tell, as Read returns it; empty if they tell none.
func Told(annotations map[string]string) string {
	var told struct {
		WireGuardKey string `json:"wireGuardKey"`
	}
	if json.Unmarshal([]byte(annotations[Annotation]), &told) != nil {
		return ""
	}
	key, _ := Read(told.WireGuardKey)
	return key
}
