package main

import (
	"crypto/x509"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// reachesTheWeb is for commands that ask registries, identity providers and webhooks. In an image that holds this program and nothing
// else there are no certificate authorities: then Mozilla's, which are built in, are trusted. What the machine has is used alone.
func reachesTheWeb(cmd *cobra.Command) *cobra.Command {
	cmd.PreRun = func(*cobra.Command, []string) { trustTheWeb() }
	return cmd
}

// trustTheWeb is not done as the program starts: it takes milliseconds, and each pod's processes are this program, too.
var trustTheWeb = sync.OnceFunc(func() {
	roots := x509.NewCertPool()
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			continue // of a form that this Go does not read
		}
		if root.Constraint == nil {
			roots.AddCert(certificate)
		} else {
			roots.AddCertWithConstraint(certificate, root.Constraint)
		}
	}
	x509.SetFallbackRoots(roots)
})
