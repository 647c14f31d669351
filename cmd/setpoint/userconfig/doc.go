// Package userconfig is `setpoint kubeconfig`: whose kubeconfig it makes, and to which servers it leads.
//
// It owns the command and its words; the names that users may have (User); the certificate of a user, which the API signs, or the CA's key
// where that lies (issue.go); and the contexts, which are the members of the log (Follow), so that a kubeconfig stays good while servers
// are replaced. cmd/setpoint calls it. It calls cmd/setpoint/kubeconfig for files, and asks servers by client-go and server/admin.
//
// Promises: a private key is made here and goes into the kubeconfig alone; a certificate ends, and whoever has it can be revoked by his
// name; the group system:masters is given only where it is named, by who has the CA's key. An address that the kubeconfig has for a member
// stays: it may be another one than the servers use among each other. What leads to other clusters stays as it is.
//
// Tested with tables and with a fake API; with the real binary by the script kubeconfig.
package userconfig
