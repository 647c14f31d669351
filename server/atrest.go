package server

import (
	"context"

	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// encryptAtRest makes the store encrypt as the trust folder and the flags say.
func encryptAtRest(ctx context.Context, config Config, store *storage.Store) (*encryption.Keeper, error) {
	name, key, err := config.Trust.CA.EncryptionKey()
	if err != nil {
		return nil, err
	}
	configured, err := encryption.New(ctx, encryption.Config{
		Options: config.Encryption, OwnFile: config.Trust.EncryptionFile(), OwnKey: encryption.Key{Name: name, Secret: key},
		ServerName: config.Name, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	return encryption.Keep(store, configured), nil
}
