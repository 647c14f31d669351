package revoke

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

var (
	errNoCertificate = errors.New("no client certificate in this file: want a kubeconfig whose current context has one, a certificate in PEM, " +
		"or the key that 'setpoint revoke list' shows")
	errOwnKey    = errors.New("this is the key that you are asking with: ask with another administrator's kubeconfig, or with a new one")
	errNoTokenID = errors.New("this token has no id (jti): revoke its user")

	hash = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Parse reads what is to be revoked: kind/name, and for a user maybe a kubeconfig, certificate or key, by which he is narrowed. The whole
// text of a token stands for its id.
func Parse(text, certificate string) (revocation.Target, error) {
	kind, name, _ := strings.Cut(text, "/")
	if kind == revocation.Token {
		id, err := idOf(name)
		if err != nil {
			return revocation.Target{}, err
		}
		text = kind + "/" + id
	}
	target, err := revocation.ParseTarget(text)
	if err != nil || certificate == "" {
		return target, err
	}
	if target.Key, err = KeyOf(certificate); err != nil {
		return target, err
	}
	return target, target.Validate()
}

// idOf is the id in the text of a token, or the text if it is none.
func idOf(text string) (string, error) {
	if token, err := tokens.Parse(text); err == nil {
		return token.ID(), nil
	}
	switch strings.Count(text, ".") {
	case 1: // a bootstrap token
		id, _, _ := strings.Cut(text, ".")
		return id, nil
	case 2:
		return jwtID(text)
	}
	return text, nil
}

// jwtID reads the id only: whoever signed the token, it is nobody's afterwards.
func jwtID(text string) (string, error) {
	var claims struct {
		ID string `json:"jti"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return "", fmt.Errorf("%w: this token cannot be read", revocation.ErrTarget)
	}
	if claims.ID == "" {
		return "", errNoTokenID
	}
	return claims.ID, nil
}

// KeyOf is the hash of the key of a client certificate: in a kubeconfig, as PEM, or the hash itself.
func KeyOf(certificate string) (string, error) {
	if hash.MatchString(certificate) {
		return certificate, nil
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		return "", err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == "CERTIFICATE" {
		return keyHash(block.Bytes)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", certificate, errNoCertificate)
	}
	key, err := keyOfClient(config)
	if err == nil && key == "" {
		err = fmt.Errorf("%s: %w", certificate, errNoCertificate)
	}
	return key, err
}

// keyOfClient is the hash of the key of the certificate that a client shows, "" if it shows none.
func keyOfClient(config *rest.Config) (key string, err error) {
	data := config.CertData
	if len(data) == 0 && config.CertFile != "" {
		if data, err = os.ReadFile(config.CertFile); err != nil {
			return "", err
		}
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return "", nil
	}
	return keyHash(block.Bytes)
}

// notOwn refuses to shut out the key that the order itself is given with: nothing could undo it.
func notOwn(config *rest.Config, key string) error {
	if own, err := keyOfClient(config); err != nil || own != key {
		return err
	}
	return errOwnKey
}

func keyHash(der []byte) (string, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return "", err
	}
	return trust.KeyHash(certificate.RawSubjectPublicKeyInfo), nil
}
