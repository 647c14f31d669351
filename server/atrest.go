package server

import (
	"context"
	"errors"

	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust/storagekeys"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// encryptAtRest makes the store encrypt as the trust folder and the flags say, and what rotates the folder's key.
func encryptAtRest(
	ctx context.Context, config Config, store *storage.Store, followed <-chan struct{},
) (*encryption.Keeper, *rotations.Sealing, error) {
	name, key, err := config.Trust.CA.EncryptionKey()
	if err != nil {
		return nil, nil, err
	}
	keys, err := config.Trust.EncryptionKeys()
	if err != nil {
		return nil, nil, err
	}
	var keeper *encryption.Keeper
	sealing := rotations.NewSealing(rotations.SealingConfig{
		Keys: keys, Followed: followed,
		Reload:  func(ctx context.Context) error { return keeper.Reload(ctx) },
		InForce: func() []storagekeys.Key { return keysInForce(keeper) },
		Sealed:  func(name string) int { return keeper.Sealed(name) },
		IsGiven: func() bool { return keeper.IsGiven() },
	})
	mayWrite := func(ctx context.Context, with encryption.Key) error { return sealing.MayWrite(ctx, idOf(with)) }
	configured, err := encryption.New(ctx, encryption.Config{
		Options: config.Encryption, OwnFile: config.Trust.EncryptionFile(), OwnKey: encryption.Key{Name: name, Secret: key},
		OwnKeys: ownKeys(keys), MayWrite: mayWrite, ServerName: config.Name, Logger: config.Logger,
	})
	if err != nil {
		return nil, nil, err
	}
	keeper = encryption.Keep(store, configured)
	return keeper, sealing, nil
}

func ownKeys(keys *storagekeys.Keys) func() ([]encryption.Key, error) {
	return func() (own []encryption.Key, err error) {
		now, err := keys.Now()
		if errors.Is(err, storagekeys.ErrOwnFile) {
			return nil, nil
		}
		for _, key := range now {
			own = append(own, encryption.Key{Name: key.Name, Secret: key.Secret})
		}
		return own, err
	}
}

// idOf is what rotations call a key, "" of one without a name.
func idOf(key encryption.Key) string {
	if key.Name == "" {
		return ""
	}
	return storagekeys.Key{Name: key.Name, Secret: key.Secret}.ID()
}

func keysInForce(keeper *encryption.Keeper) (keys []storagekeys.Key) {
	for _, key := range keeper.OwnKeys() {
		keys = append(keys, storagekeys.Key{Name: key.Name, Secret: key.Secret})
	}
	return keys
}
