package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// errAuthorities says that a file holds no authorities. The decoder's error may repeat a part of the text.
var errAuthorities = errors.New("not a file of certificate authorities")

// AuthorityRing are the authorities of a CA, with their keys, as a Ring: the file ca.ring has them, once there was another one than the
// first, and ca.crt and ca.key the one that signs.
type AuthorityRing struct {
	*Ring[*Authority]
	ca  *CA
	dir string
}

// authorityText and authoritiesText are what is in ca.ring. Their fields are never renamed.
type authorityText struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

type authoritiesText struct {
	Authorities []authorityText `json:"authorities"`
	// Founding is the one that the cluster began with, also when nothing it has signed is believed any more.
	Founding *authorityText `json:"founding,omitempty"`
	// Former are the hashes of those that were dropped.
	Former []string `json:"former,omitempty"`
}

// caOf has a ring that ends with the process.
func caOf(all []*Authority, founding *Authority) *CA {
	ca := &CA{founding: founding}
	ca.hold(all)
	ca.ring = &AuthorityRing{ca: ca, Ring: &Ring[*Authority]{form: ringForm[*Authority]{
		what: "certificate authority", parse: parseAuthorities, changed: ca.hold,
		encode: func(all []*Authority, _ bool) ([]byte, error) { return encodeAuthorities(all, nil) },
	}}}
	ca.ring.now.Store(&all)
	return ca
}

// copied is another CA with the authorities of now, which end with the process.
func (ca *CA) copied() *CA {
	other := caOf(ca.current().all, ca.founding)
	other.known.add(ca.former(nil)...)
	return other
}

// keptIn makes a folder keep the authorities.
func (ca *CA) keptIn(folder string) {
	ca.ring.dir, ca.ring.file = folder, filepath.Join(folder, fileCARing)
	ca.ring.form.encode = func(all []*Authority, _ bool) ([]byte, error) {
		return encodeAuthorities(all, ca.founding, ca.former(all)...)
	}
	ca.ring.form.parse = func(text []byte) ([]*Authority, bool, error) {
		ca.remember(text)
		return parseAuthorities(text)
	}
}

// Ring are the authorities, nil of a derived CA.
func (ca *CA) Ring() *AuthorityRing { return ca.ring }

// current are the authorities of now.
func (ca *CA) current() *authorities {
	if ca.follows != nil {
		return ca.follows.current().serving
	}
	return ca.now.Load()
}

func (ca *CA) signing() *Authority { return ca.current().all[0] }

func (ca *CA) behindPEM() []byte { return ca.current().behindPEM }

// hold makes others see other authorities from now on. An authority is held before it is known: see Dropped.
func (ca *CA) hold(all []*Authority) {
	former := ca.now.Swap(authoritiesOf(all))
	for _, a := range all {
		ca.known.add(a.ID())
	}
	if former != nil {
		close(former.replaced)
	}
}

// Replaced is closed when there are other authorities, or another signs.
func (ca *CA) Replaced() <-chan struct{} { return ca.current().replaced }

// Moment is equal as long as the authorities are the same.
func (ca *CA) Moment() any { return ca.current() }

// hasSigned reports whether a certificate is of the authority that signs.
func (ca *CA) hasSigned(certificate *x509.Certificate) bool {
	return certificate.CheckSignatureFrom(ca.signing().certificate) == nil
}

// KeyIDs are what the certificates of the authorities call their keys, and those of the authorities that follow from them.
func (ca *CA) KeyIDs() (all []string) {
	for _, a := range ca.current().all {
		all = append(all, string(a.certificate.SubjectKeyId))
		if a.serving != nil {
			all = append(all, string(a.serving.certificate.SubjectKeyId))
		}
	}
	return all
}

// Add is Ring.Add.
func (r *AuthorityRing) Add(text []byte) (id string, err error) {
	if err := r.settle(); err != nil {
		return "", err
	}
	return r.Ring.Add(text)
}

// Use is Ring.Use.
func (r *AuthorityRing) Use(id string) error {
	return errors.Join(r.settle(), r.Ring.Use(id), r.Settle())
}

// Drop is Ring.Drop.
func (r *AuthorityRing) Drop(id string) error { return errors.Join(r.settle(), r.Ring.Drop(id)) }

// Text is Ring.Text.
func (r *AuthorityRing) Text(id string) ([]byte, error) {
	a := r.ca.current().at(id)
	if a == nil {
		return nil, ErrNoKey
	}
	return encodeAuthorities([]*Authority{a}, nil)
}

// settle writes ca.ring where there is none yet.
func (r *AuthorityRing) settle() error {
	if r.file == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := os.Stat(r.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.write(*r.Now(), false)
}

// Settle makes ca.key and ca.crt those of the authority that signs, where there is a ring.
func (r *AuthorityRing) Settle() error {
	if r.file == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := os.Stat(r.file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	used := r.Used()
	keyPEM, err := encodeKey(used.key)
	if err != nil {
		return err
	}
	return errors.Join(
		replaced(filepath.Join(r.dir, fileCAKey), keyPEM, secretfile.Secret),
		replaced(filepath.Join(r.dir, fileCACert), encodeCert(used.certificate.Raw), secretfile.Public),
	)
}

// replaced writes a file that has other content.
func replaced(path string, content []byte, mode fs.FileMode) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	return secretfile.Write(path, content, mode)
}

// loadAuthorities reads ca.ring, nil if there is none.
func loadAuthorities(folder string) (*CA, error) {
	text, err := os.ReadFile(filepath.Join(folder, fileCARing))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ca, err := authoritiesIn(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileCARing, err)
	}
	ca.keptIn(folder)
	return ca, nil
}

// loadCA reads the authorities of a folder.
func loadCA(folder string) (*CA, error) {
	if ca, err := loadAuthorities(folder); err != nil || ca != nil {
		return ca, err
	}
	certPEM, err := os.ReadFile(filepath.Join(folder, fileCACert))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(folder, fileCAKey))
	if err != nil {
		return nil, err
	}
	ca, err := ParseCA(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	ca.keptIn(folder)
	return ca, nil
}

// authority is the CA of the files.
func (s Shared) authority() (*CA, error) {
	if text := s[fileCARing]; len(text) > 0 {
		return authoritiesIn(text)
	}
	return ParseCA(s[fileCACert], s[fileCAKey])
}

// authoritiesIn reads the text of ca.ring.
func authoritiesIn(text []byte) (*CA, error) {
	all, _, err := parseAuthorities(text)
	if err != nil {
		return nil, err
	}
	var whole authoritiesText
	if err := json.Unmarshal(text, &whole); err != nil || whole.Founding == nil {
		return nil, errAuthorities
	}
	founding, err := whole.Founding.parse()
	if err != nil {
		return nil, err
	}
	ca := caOf(all, founding)
	ca.known.add(whole.Former...)
	return ca, nil
}

func parseAuthorities(text []byte) (all []*Authority, rotated bool, err error) {
	var whole authoritiesText
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, false, errAuthorities
	}
	if n := len(whole.Authorities); n < 1 || n > ringKeysMax {
		return nil, false, fmt.Errorf("%w: it has %d, want 1 to %d", errAuthorities, n, ringKeysMax)
	}
	for _, one := range whole.Authorities {
		a, err := one.parse()
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(all, func(other *Authority) bool { return other.ID() == a.ID() }) {
			return nil, false, fmt.Errorf("%w: one is there twice", errAuthorities)
		}
		all = append(all, a)
	}
	return all, false, nil
}

func (t authorityText) parse() (*Authority, error) {
	a, err := parseAuthority([]byte(t.Certificate), []byte(t.Key))
	if err == nil && (!a.certificate.IsCA || a.certificate.CheckSignatureFrom(a.certificate) != nil) {
		return nil, fmt.Errorf("%w: a certificate in it is no authority's", errAuthorities)
	}
	return a, err
}

// encodeAuthorities is the text of ca.ring; without founding it is that of AuthorityRing.Add.
func encodeAuthorities(all []*Authority, founding *Authority, former ...string) ([]byte, error) {
	whole := authoritiesText{Former: former}
	for _, a := range all {
		text, err := textOf(a)
		if err != nil {
			return nil, err
		}
		whole.Authorities = append(whole.Authorities, text)
	}
	if founding != nil {
		text, err := textOf(founding)
		if err != nil {
			return nil, err
		}
		whole.Founding = &text
	}
	return json.Marshal(whole)
}

func textOf(a *Authority) (authorityText, error) {
	keyPEM, err := encodeKey(a.key)
	return authorityText{Certificate: string(encodeCert(a.certificate.Raw)), Key: string(keyPEM)}, err
}

// Pins are the hashes of the identity's authorities, in their order.
func (id *Identity) Pins() (pins []string, err error) {
	authorities, err := ParseCertificates(id.CAPEM)
	for _, a := range authorities {
		pins = append(pins, Pin(a))
	}
	return pins, err
}

// signer is the first one of the identity's authorities that has signed its certificate, nil if none has.
func (id *Identity) signer() *x509.Certificate {
	certificate, err := ParseCertificate(id.CertPEM)
	if err != nil {
		return nil
	}
	authorities, err := ParseCertificates(id.CAPEM)
	if err != nil {
		return nil
	}
	for _, a := range authorities {
		if certificate.CheckSignatureFrom(a) == nil {
			return a
		}
	}
	return nil
}
