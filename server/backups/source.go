package backups

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/server/backups/place"
	"github.com/setpoint-io/setpoint/server/backups/sealed"
)

// Source is how the commands that read backups reach and open them. The zero value reads files that are not encrypted.
type Source struct {
	S3 place.S3
	// Identity is the file with the private keys for encrypted ones.
	Identity string
}

// Flags are the flags for it.
func (s *Source) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Identity, "identity", "", "file with the private key that opens an encrypted backup, as age-keygen writes it")
	s.S3.Flags(flags, "")
}

// Open opens the backup of an address, a path or s3://BUCKET/KEY, and decrypts it.
func (s *Source) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	identities, err := sealed.Identities(s.Identity)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	file, err := place.OpenFile(ctx, address, s.S3)
	if err != nil {
		return nil, err
	}
	in, err := sealed.Open(file, identities)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return opened{in, file}, nil
}

// opened is a file that is decrypted.
type opened struct {
	io.Reader
	io.Closer
}

// List is List of the place of an address.
func (s *Source) List(ctx context.Context, address string) ([]Entry, error) {
	identities, err := sealed.Identities(s.Identity)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	p, err := place.At(address, s.S3)
	if err != nil {
		return nil, err
	}
	return List(ctx, p, identities)
}
