package sealed

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// keys writes a file of identities and one of its recipient.
func keys(t *testing.T) (identities, recipients string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	identities, recipients = filepath.Join(dir, "identities"), filepath.Join(dir, "recipients")
	for file, text := range map[string]string{identities: "# of a test\n" + identity.String() + "\n", recipients: identity.Recipient().String() + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return identities, recipients
}

func sealed(t *testing.T, recipientsFile, text string) []byte {
	t.Helper()
	recipients, err := Recipients(recipientsFile)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := Writer(&out, recipients)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// opened is what comes out of data.
func opened(t *testing.T, data []byte, identitiesFile string) (string, error) {
	t.Helper()
	identities, err := Identities(identitiesFile)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Open(bytes.NewReader(data), identities)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(in)
	return string(text), err
}

func TestRoundTrip(t *testing.T) {
	identities, recipients := keys(t)
	text := strings.Repeat("all objects", 20_000)
	data := sealed(t, recipients, text)
	if bytes.Contains(data, []byte("all objects")) {
		t.Error("it can be read")
	}
	if got, err := opened(t, data, identities); err != nil || got != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, cut := range []int{len(data) - 1, len(data) / 2, 300} {
		if got, err := opened(t, data[:cut], identities); err == nil {
			t.Errorf("cut at %d: %d bytes and no error", cut, len(got))
		}
	}
	data[len(data)-20] ^= 1
	if _, err := opened(t, data, identities); err == nil {
		t.Error("a changed byte is no error")
	}
}

func TestWhoOpensIt(t *testing.T) {
	identities, recipients := keys(t)
	stranger, _ := keys(t)
	data := sealed(t, recipients, "all objects")
	if _, err := opened(t, data, ""); !errors.Is(err, ErrNoIdentity) {
		t.Error(err)
	}
	if _, err := opened(t, data, stranger); err == nil || !strings.Contains(err.Error(), "to others") {
		t.Error(err)
	}
	for _, file := range []string{"", identities} {
		if got, err := opened(t, []byte("plain"), file); err != nil || got != "plain" {
			t.Errorf("%q: %q %v", file, got, err)
		}
	}
}

// TestKeysAreNotTold: a file with a mistake is refused by its line, and nothing in it is printed.
func TestKeysAreNotTold(t *testing.T) {
	identities, _ := keys(t)
	if _, err := Recipients(identities); err == nil || strings.Contains(err.Error(), "AGE-SECRET-KEY-") {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + "x"} {
		if _, err := Recipients(file); err == nil {
			t.Errorf("%s was taken", file)
		}
		if _, err := Identities(file); err == nil {
			t.Errorf("%s was taken", file)
		}
	}
}
