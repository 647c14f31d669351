package server

import (
	"context"

	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/trust"
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
		InForce: func() []trust.StorageKey { return keysInForce(keeper) },
		Sealed:  func(name string) int { return keeper.Sealed(name) },
		IsGiven: func() bool { return keeper.IsGiven() },
	})
	configured, err := encryption.New(ctx, encryption.Config{
		Options: config.Encryption, OwnFile: config.Trust.EncryptionFile(), OwnKey: encryption.Key{Name: name, Secret: key},
		OwnKeys: ownKeys(keys), MayWrite: sealing.MayWrite, ServerName: config.Name, Logger: config.Logger,
	})
	if err != nil {
		return nil, nil, err
	}
	keeper = encryption.Keep(store, configured)
	return keeper, sealing, nil
}

func ownKeys(keys *trust.EncryptionKeys) func() ([]encryption.Key, error) {
	return func() (own []encryption.Key, err error) {
		now, err := keys.Now()
		for _, key := range now {
			own = append(own, encryption.Key{Name: key.Name, Secret: key.Secret})
		}
		return own, err
	}
}

func keysInForce(keeper *encryption.Keeper) (keys []trust.StorageKey) {
	for _, key := range keeper.OwnKeys() {
		keys = append(keys, trust.StorageKey{Name: key.Name, Secret: key.Secret})
	}
	return keys
}
