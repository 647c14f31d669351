package sealed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
)

// Suffix is at the end of the names of encrypted files.
const Suffix = ".age"

// keyFileBytesMax is what a file of recipients or identities may have.
const keyFileBytesMax = 64 << 10

// magic begins every encrypted file.
const magic = "age-encryption.org/v1\n"

// ErrNoIdentity: a file is encrypted, and nothing that opens it was given.
var ErrNoIdentity = errors.New("it is encrypted: give --identity, the file with the private key of one of its recipients")

// Recipients reads a file with a recipient in each line (age1…), comments with # and empty lines aside.
func Recipients(path string) (recipients []age.Recipient, err error) {
	err = readKeys(path, func(in io.Reader) (err error) {
		recipients, err = age.ParseRecipients(in)
		return err
	})
	return recipients, err
}

// Identities reads a file as age-keygen writes it. An empty path is none.
func Identities(path string) (identities []age.Identity, err error) {
	if path == "" {
		return nil, nil
	}
	err = readKeys(path, func(in io.Reader) (err error) {
		identities, err = age.ParseIdentities(in)
		return err
	})
	return identities, err
}

// readKeys gives a file to parse, whose errors name lines and never a key.
func readKeys(path string, parse func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := parse(io.LimitReader(file, keyFileBytesMax)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Writer encrypts what is written to it; without recipients it only passes it on. It has to be closed, which does not close out.
func Writer(out io.Writer, recipients []age.Recipient) (io.WriteCloser, error) {
	if len(recipients) == 0 {
		return plain{out}, nil
	}
	return age.Encrypt(out, recipients...)
}

// plain is a Writer of what is not encrypted.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// Open reads what a Writer has written. What is not encrypted is passed on. The error is ErrNoIdentity if there is no identity at all.
func Open(in io.Reader, identities []age.Identity) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	if start, _ := buffered.Peek(len(magic)); string(start) != magic {
		return buffered, nil
	}
	if len(identities) == 0 {
		return nil, ErrNoIdentity
	}
	opened, err := age.Decrypt(buffered, identities...)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, errors.New("it was encrypted to others: no key of --identity opens it")
	}
	return opened, err
}
