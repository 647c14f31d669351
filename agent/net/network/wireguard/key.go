package wireguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

const (
	keyFile      = "private-key"
	keyTextBytes = 44 // 32 bytes in base64
)

// Key is this node's private key: that in dir, or a new one, which is written there.
func Key(dir string) (wgtypes.Key, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return newKey(dir, path)
	}
	if err != nil {
		return wgtypes.Key{}, err
	}
	key, err := wgtypes.ParseKey(strings.TrimSpace(string(text)))
	if err != nil { // the message must not have the content
		return wgtypes.Key{}, fmt.Errorf("%s is no WireGuard key of %d characters: delete it, the node gets another", path, keyTextBytes)
	}
	return key, nil
}

func newKey(dir, path string) (wgtypes.Key, error) {
	key, err := wgtypes.GeneratePrivateKey()
	if err == nil {
		err = private.Folder(dir)
	}
	if err != nil {
		return key, err
	}
	return key, private.WriteFile(path, []byte(key.String()+"\n"))
}
