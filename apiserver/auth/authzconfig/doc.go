// Package authzconfig asks webhooks what users may do, before or after the cluster's own judges, as the administrator configured.
//
// Package server/access makes an Authorization from a file of kind AuthorizationConfiguration (apiserver.config.k8s.io) and the cluster's
// own authorizer, which is Node and RBAC of the file. Reading, validation, match conditions and the calls themselves are upstream's. Run
// reads the file, and the kubeconfigs that it names, again every reloadInterval; what is wrong in them is said once, and the former
// configuration stays in force. Validate says the same before a server starts.
//
// Node and RBAC cannot be left out, and stand next to each other: agents and control loops have their rights by them. Administrators
// (system:masters) and servers ask nobody, so no webhook can keep them out. What cannot be honoured is refused by name. Tests run a webhook
// in the process.
package authzconfig
