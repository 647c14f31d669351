// Package podconfig turns a pod's spec into the configurations CRI wants.
//
// It owns: environment, security context, resources, DNS, mounts of the files the
// agent makes (/etc/hosts, the termination log), labels and annotations. It may
// call: client-go lookups handed in as Objects.
//
// Promises: Sandbox and Container are deterministic in their arguments; what the
// user got wrong (a missing key, root where it is forbidden) comes back as a
// *ConfigError, which upstream shows as CreateContainerConfigError; anything else
// is worth a retry.
//
// Tested with tables.
package podconfig
