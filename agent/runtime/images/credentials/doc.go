// Package credentials asks credential provider plugins, programs beside the agent, what to show an image registry, as a
// kubelet does: https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/.
//
// It owns the CredentialProviderConfig ([Read]) and what plugins answered, for as long as they say. agent/runtime/images asks it when
// an image is pulled, after the pod's own pull secrets; agent/host reads the files.
//
// It promises: a configuration that says what the agent does not do is refused, with the field's path; a plugin that hangs,
// fails or says too much costs a pull its answer, and not the pods of other images; answers and tokens are never logged. A
// plugin with tokenAttributes gets a token of the pod's service account, and its answer is that account's alone.
//
// Which images a pattern means is a table; plugins are tested as shell scripts, and how long answers are kept in bubbles.
package credentials
