package revoke

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What --help says.
const (
	long = "Shut out a machine, a user or a token, on every server, for new and for open connections, until --undo.\n\n" +
		"  node/NAME     every certificate of this node, and joining under its name\n" +
		"  server/NAME   every certificate of this server; it is removed from the members too\n" +
		"  user/NAME     whoever is called so: by a certificate, by a token of an issuer, or as a service account\n" +
		"                (system:serviceaccount:NAMESPACE:NAME); with --certificate only that certificate's key\n" +
		"  token/ID      a token to join with ('setpoint token list'), or one of a service account or an issuer, by its id (jti, which the\n" +
		"                audit log shows); the whole text of a token stands for its id"
	examples = "  setpoint revoke node/worker-3\n  setpoint revoke user/jane --certificate jane.kubeconfig\n" +
		"  setpoint revoke node/worker-3 --undo   # when the machine was reset, or for another one"
	certificateUsage = "kubeconfig or certificate (PEM) of a user, or its key as 'setpoint revoke list' shows it: only that key is revoked"
)

// elsewhere is an error after which another server is asked.
type elsewhere struct{ text string }

func (e elsewhere) Error() string { return e.text }

// Timeout makes the caller ask the next one.
func (elsewhere) Timeout() bool { return true }

// itself is in the refusal of a server that would shut itself out.
const itself = "would shut itself out"

// Elsewhere is the error, or one after which another server is asked, if a server refuses to shut out itself.
func Elsewhere(err error) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), itself) {
		return elsewhere{err.Error()}
	}
	return err
}
