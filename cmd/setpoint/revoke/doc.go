// Package revoke is what `setpoint revoke` does: it reads what is to be shut out, and writes the cluster's list of it.
//
// It owns the order of the command line, the key that a kubeconfig or certificate has, and the change of the list (package
// internal/revocation), which is made anew when somebody else has changed it meanwhile, ConflictsMax times. It asks servers by the
// Shell that it is handed, and nobody else.
//
// Promises: what is revoked already, or not revoked and undone, is said and is no change. A refusal of the server is passed on as it is.
//
// Tested with client-go's fake client and tables; the command by the script revoke.
package revoke
