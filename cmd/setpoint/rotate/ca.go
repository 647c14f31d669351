package rotate

import (
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// longCA is what the help says of the kind.
const longCA = `  ca         the certificate authority. All servers and nodes believe both, then the new one signs and they have their certificates
             renewed, and after --keep-old (168h) the old one is dropped. A node that is away is waited for, by name, until it comes
             back or its Node is deleted. What you keep outside the cluster is yours to replace before that: see the command's output
`

// endingWithCA says what ends when the old authority is dropped and nobody but its holders can replace, "" if nothing was begun.
func endingWithCA(order rotations.Order, p rotation.Progress) string {
	if p.Kind != rotation.CA || order.Order != rotations.Begin || !p.UnderWay() {
		return ""
	}
	return `
When the old one is dropped these end, and this command replaces none of them:
  certificates of users that were made before the phase use: run 'setpoint kubeconfig' again, and approve new CertificateSigningRequests
  the CA in kubeconfigs outside the servers' trust folders: copy it from the ConfigMap kube-root-ca.crt once the phase is use
  tokens to join that were made before the phase use: run 'setpoint token create' again
  pods that have read the CA once: restart those that read their ca.crt only when they start`
}
